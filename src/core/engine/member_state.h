/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox knows of itself as a member (core/sandbox/member.h), in its record and while it runs. */
#pragma once

#include "core/engine/sandbox_state.h"

/* Whether it is a member of another. */
static inline bool member_state_is_one(const struct sandbox *sandbox)
{
	return sandbox->record.parent[0];
}

/* What a record says of the sandbox itself among its members: borrowed, NULL if nothing. */
const json_t *member_state_policy(const struct sandbox_record *record);

/* The roles that it depends on; NULL if there are none. */
const json_t *member_state_depends_on(const struct sandbox_record *record);

/* It comes up now: whether its start commands wait, and its health is not known. sandbox.state is held. */
void member_state_reset(struct sandbox *sandbox);

/* What it runs has ended, or runs again: its health is asked now, and more often for a while. sandbox.state is held. */
void member_state_hurry(struct sandbox *sandbox);

/* Something changed that the watch (core/member/member_watch.h) is to look at soon. */
void member_state_wake_watch(struct engine *engine);
