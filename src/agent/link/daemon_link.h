/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the link to the daemon. Receives and sends frames and never blocks.
 *
 * There is one struct daemon_link for the life of the agent; its sockets come and go. Frames that
 * are put while no daemon has attached are dropped: a caller whose frame must not be lost puts it
 * again after the next AGENT_ATTACH.
 *
 * A link that fails or breaks the protocol is only marked broken; daemon_link_settle(), which the
 * loop calls after each batch of events, closes it. So no handler works with freed memory.
 */
#pragma once

#include "agent/link/output_backlog.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon_link {
	int epoll_fd;
	int fd; /* -1: none */
	bool attached;
	bool broken;
	bool full;	  /* the socket takes no more at present */
	uint32_t watched; /* epoll events */
	struct buf in;
	struct buf out;
};

/* 0, or negative for a frame that breaks the protocol. */
typedef int daemon_link_handler(void *context, const struct frame *frame);

void daemon_link_init(struct daemon_link *link, int epoll_fd);

/* Takes the memory that the first link will need. */
void daemon_link_prepare(struct daemon_link *link);

/* Takes fd as the new link, in place of the old one. */
void daemon_link_open(struct daemon_link *link, int fd);

/* Receives once, and hands each whole frame to the handler. */
void daemon_link_receive(struct daemon_link *link, daemon_link_handler *handler, void *context);

/*
 * Begins a frame whose payload of len bytes the caller packs next. NULL when no daemon is attached.
 * daemon_link_settle() sends it at the latest.
 */
struct buf *daemon_link_begin(struct daemon_link *link, uint16_t kind, uint32_t id, uint32_t len);

/* Sends one AGENT_OUTPUT. False, and nothing was sent, when the link is full or closed. */
bool daemon_link_put_output(
	struct daemon_link *link, uint32_t id, const struct output_backlog_piece *piece);

/* Sends queued frames when the socket takes bytes again. */
void daemon_link_resume(struct daemon_link *link);

/* Whether frames are queued that the socket may take. */
bool daemon_link_has_more(const struct daemon_link *link);

/* Sends queued frames, closes a broken link, and tells epoll which events to report now. */
void daemon_link_settle(struct daemon_link *link);
