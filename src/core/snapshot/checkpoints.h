/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: snapshots that are made before a command, for an undo of what it did. A sandbox has a
 * few, the newest of which an undo goes back to and then drops, so that the next goes further back.
 * They count in the quota as others do, and are removed with the files of their sandbox.
 */
#pragma once

#include "core/snapshot/snapshots.h"

#define CHECKPOINTS_MAX 10 /* of a sandbox; the oldest goes for a new one */

/* Makes one, unless nothing has changed since the last; ret_id is that which an undo goes back to. */
int checkpoints_take(struct sandbox *sandbox, char ret_id[ID_LEN + 1], struct err *err) must_check;

/* Goes back to the last one, whose id is ret_id then. ERR_CONFLICT, no_checkpoint: there is none. */
int checkpoints_undo(struct sandbox *sandbox, char ret_id[ID_LEN + 1], struct err *err) must_check;
