/* SPDX-License-Identifier: Apache-2.0 */
/* Channels (wire/agent.h): streams of bytes to the agent of a running sandbox, one for each request. */
#pragma once

#include "core/engine/agent_link.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"

/*
 * Opens one beside a link; its first frame, of that kind, says what it is for. Does not block.
 * ERR_CONFLICT if the sandbox ended just now, also if another of its id runs already.
 */
int agent_channel_open(struct engine *engine, const char *sandbox_id, const struct agent_link *link,
	uint16_t kind, const void *payload, size_t len, int *ret_fd, struct err *err) must_check;
