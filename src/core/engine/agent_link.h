/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of a link to an agent: frames out from any thread, frames in on the event loop's.
 *
 * The agent is hostile input. A frame that does not parse, is out of place or exceeds its window ends
 * the link, and with it the sandbox; nothing the agent says is used as a path, a pid or a size to
 * allocate. What one link takes is bounded: one frame in, LINK_OUT_MAX bytes out.
 */
#pragma once

#include "base/err.h"
#include "driver/driver.h"
#include "event/event_loop.h"
#include "wire/agent.h"
#include "wire/frame.h"

struct agent_link;

struct agent_link_events {
	/* A frame came. Returns 0, or -EPROTO to end the link. */
	int (*frame)(void *arg, const struct frame *frame);
	/* The link ended, by either side. Called once; no frame follows. */
	void (*lost)(void *arg);
};

/* Takes over the descriptor. The link starts with a reference for the caller; events come until `lost`. */
int agent_link_open(struct event_loop *loop, const struct driver_link *from,
	const struct agent_link_events *events, void *arg, struct agent_link **ret_link,
	struct err *err) must_check;

/* Its number (driver/driver.h), for channels beside it. */
uint64_t agent_link_number(const struct agent_link *link);
struct agent_link *agent_link_ref(struct agent_link *link);
void agent_link_unref(struct agent_link *link);

/* Ends the link; `lost` will be called unless it was. */
void agent_link_close(struct agent_link *link);

/* Sends a frame. -EPIPE if it ended, -EAGAIN if too much waits for the agent already. */
int agent_link_send(struct agent_link *link, uint16_t kind, uint32_t id, const void *payload,
	size_t len) must_check;
