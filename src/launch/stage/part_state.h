/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a part of an app is what it was when an earlier launch checked and started it: digests of the files that it has
 * in the copy, where people and the app may have changed them, and of the packages. Both are kept in .sandlot of the copy.
 * A sandbox that lies about them keeps its own app from being started anew, and nothing else.
 */
#pragma once

#include "launch/stage/pipeline.h"

/* Reads them once for a launch. -ECANCELED, or -errno with err, of the sandbox; what cannot be made out stays unknown. */
int part_state_read(struct pipeline *pipeline, enum app_role role, struct err *err) must_check;

/*
 * Whether nothing has changed since it was checked; since this process was started, or the one before it whose place it
 * took when the sandbox woke: that has read the same.
 */
bool part_state_is_checked(const struct part_state *state);
bool part_state_is_started(const struct part_state *state, uint32_t process);

/* Keeps that it is as it is now. */
int part_state_note_check(struct pipeline *pipeline, enum app_role role, struct err *err)
	must_check;
int part_state_note_start(struct pipeline *pipeline, enum app_role role, uint32_t process,
	struct err *err) must_check;
