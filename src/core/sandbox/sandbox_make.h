/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first start of a sandbox whose row says `creating`, and how that is undone. Whoever calls these holds its
 * life lock.
 */
#pragma once

#include "core/engine/sandbox_state.h"

/*
 * Makes its files and starts it; its row says `running` then. Until it returned 0 there is a mark
 * (unfinished.h), so that a daemon that dies meanwhile leaves nothing half-made.
 */
int sandbox_make(struct sandbox *sandbox, struct err *err) must_check;

/* After a failure: ends what runs and removes the files, but for a workspace from before. Row and mark stay. */
int sandbox_make_undo(struct sandbox *sandbox, struct err *err) must_check;

/* Starts it, and prepares it for its commands (sandbox_prepare.h), at any start; on failure it does not run. */
int sandbox_make_up(struct sandbox *sandbox, struct err *err) must_check;

/* It was brought up: that is written down, and what it is to run is started. */
int sandbox_make_live(struct sandbox *sandbox, struct err *err) must_check;
