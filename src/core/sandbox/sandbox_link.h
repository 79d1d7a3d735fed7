/* SPDX-License-Identifier: Apache-2.0 */
/* The link between a sandbox and its agent, from the first word to the last. */
#pragma once

#include "core/engine/sandbox_state.h"

/* Takes up the link of one that was just started, and waits until its agent has answered. life is held. */
int sandbox_link_meet(struct sandbox *sandbox, const struct driver_link *from,
	const struct walls *walls, struct err *err) must_check;

/* Waits until the agent has answered on its present link, and gives a reference to that. */
int sandbox_link_await(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err)
	must_check;

/* From now on the loss of the link is no surprise. A reference to it, or NULL if there is none. */
struct agent_link *sandbox_link_expect_end(struct sandbox *sandbox, enum end_reason reason);

/* It could not be ended: from now on the loss of the link is a surprise again. */
void sandbox_link_expect_life(struct sandbox *sandbox);

/* Gives processes a moment to end by themselves. Not worth it if there are none. */
void sandbox_link_ask_to_end(struct sandbox *sandbox, enum end_reason reason);

/* Closes the link, if any, waits until its last event is through, and ends what ran. life is held. */
void sandbox_link_close(struct sandbox *sandbox, const struct termination *how);

/* Takes up the link of one that a previous daemon started. life must be held. */
int sandbox_adopt(struct sandbox *sandbox, const struct driver_link *from,
	const struct walls *walls, struct err *err) must_check;
