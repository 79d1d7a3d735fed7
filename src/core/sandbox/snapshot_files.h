/* SPDX-License-Identifier: Apache-2.0 */
/* How the files of snapshots (core/snapshot/snapshots.h) go. */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"

/* Files first, then the row; what cannot be removed now goes when the daemon starts next. */
void snapshot_files_drop(struct engine *engine, const char *id);

/* When the daemon starts: removes what was cut short. */
int snapshot_files_settle(struct engine *engine, struct err *err) must_check;

/* After a purge, which has marked the checkpoints of the sandbox: removes them. */
void snapshot_files_purge(struct engine *engine, const char *sandbox_id);
