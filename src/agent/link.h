/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the link to the daemon: frames in, frames out, never blocking.
 *
 * There is one struct link for the life of the agent; the sockets behind it come and go. Frames
 * that are put while no daemon has attached are dropped: whoever has something to say that must not
 * be lost says it again after the next AGENT_ATTACH.
 *
 * A link that fails or breaks the protocol is only marked broken; link_settle(), which the loop
 * calls after each batch of events, closes it. So nothing is freed under a handler's feet.
 */
#pragma once

#include "agent/backlog.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

#define LINK_FDS_MAX 4

struct link {
	int epoll_fd;
	int fd; /* -1: none */
	bool attached;
	bool broken;
	bool full;	  /* the socket takes no more at present */
	uint32_t watched; /* epoll events */
	struct buf in;
	struct buf out;
	int fds[LINK_FDS_MAX]; /* received, not yet claimed by their frames */
	size_t fd_count;
};

/* 0, or negative for a frame that breaks the protocol. */
typedef int link_handler(void *context, const struct frame *frame);

void link_init(struct link *link, int epoll_fd);

/* Takes fd as the new link, in place of the one there was. */
void link_open(struct link *link, int fd);

/* Receives what is there, once, and hands each whole frame to the handler. */
void link_receive(struct link *link, link_handler *handler, void *context);

/* The descriptor that came with the frame being handled; -1 if there is none. */
int link_take_fd(struct link *link);

/*
 * Begins a frame whose payload of len bytes the caller packs next. NULL when nobody is attached.
 * Sent by link_settle() at the latest.
 */
struct buf *link_begin(struct link *link, uint16_t kind, uint32_t id, uint32_t len);

/* Sends one AGENT_OUTPUT. False, and nothing was taken, when the link is full or gone. */
bool link_put_output(struct link *link, uint32_t id, const struct backlog_piece *piece);

/* The socket takes bytes again: sends what waits. */
void link_resume(struct link *link);

/* Sends what waits, closes what broke, and asks epoll for what is of interest now. */
void link_settle(struct link *link);
