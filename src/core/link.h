/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of a link to an agent: frames out from any thread, frames in on the reactor's.
 *
 * The agent is hostile input. A frame that does not parse, is out of place or exceeds its window ends
 * the link, and with it the sandbox; nothing the agent says is used as a path, a pid or a size to
 * allocate. What one link takes is bounded: one frame in, LINK_OUT_MAX bytes and LINK_FDS_MAX descriptors out.
 */
#pragma once

#include "base/err.h"
#include "core/reactor.h"
#include "wire/agent.h"
#include "wire/frame.h"

struct link;

struct link_events {
	/* A frame came. Returns 0, or -EPROTO to end the link. */
	int (*frame)(void *arg, const struct frame *frame);
	/* The link ended, by either side. Called once; no frame follows. */
	void (*lost)(void *arg);
};

/* Takes over fd. The link starts with a reference for the caller; events come until `lost`. */
int link_open(struct reactor *reactor, int fd, const struct link_events *events, void *arg,
	struct link **ret_link, struct err *err) must_check;
struct link *link_ref(struct link *link);
void link_unref(struct link *link);

/* Ends the link; `lost` will be called unless it was. */
void link_close(struct link *link);

/* Sends a frame, with a descriptor beside it if fd >= 0 (it stays the caller's). -EPIPE if it ended, -EAGAIN if
 * too much waits for the agent already. */
int link_send(struct link *link, uint16_t kind, uint32_t id, const void *payload, size_t len,
	int fd) must_check;
