/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the link to the daemon: frames in, frames out, never blocking.
 *
 * There is one struct uplink for the life of the agent; the sockets behind it come and go. Frames
 * that are put while no daemon has attached are dropped: whoever has something to say that must not
 * be lost says it again after the next AGENT_ATTACH.
 *
 * A link that fails or breaks the protocol is only marked broken; uplink_settle(), which the loop
 * calls after each batch of events, closes it. So nothing is freed under a handler's feet.
 */
#pragma once

#include "agent/backlog.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define UPLINK_FDS_MAX 4

struct uplink {
	int epoll_fd;
	int fd; /* -1: none */
	bool attached;
	bool broken;
	bool full;	  /* the socket takes no more at present */
	uint32_t watched; /* epoll events */
	struct buf in;
	struct buf out;
	int fds[UPLINK_FDS_MAX]; /* received, not yet claimed by their frames */
	size_t fd_count;
};

/* 0, or negative for a frame that breaks the protocol. */
typedef int uplink_handler(void *context, const struct frame *frame);

void uplink_init(struct uplink *uplink, int epoll_fd);

/* Takes fd as the new link, in place of the one there was. */
void uplink_open(struct uplink *uplink, int fd);

/* Receives what is there, once, and hands each whole frame to the handler. */
void uplink_receive(struct uplink *uplink, uplink_handler *handler, void *context);

/* The descriptor that came with the frame being handled; -1 if there is none. */
int uplink_take_fd(struct uplink *uplink);

/*
 * Begins a frame whose payload of len bytes the caller packs next. NULL when nobody is attached.
 * Sent by uplink_settle() at the latest.
 */
struct buf *uplink_begin(struct uplink *uplink, uint16_t kind, uint32_t id, uint32_t len);

/* Sends one AGENT_OUTPUT. False, and nothing was taken, when the link is full or gone. */
bool uplink_put_output(struct uplink *uplink, uint32_t id, const struct backlog_piece *piece);

/* The socket takes bytes again: sends what waits. */
void uplink_resume(struct uplink *uplink);

/* Sends what waits, closes what broke, and asks epoll for what is of interest now. */
void uplink_settle(struct uplink *uplink);
