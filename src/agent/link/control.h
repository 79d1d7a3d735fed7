/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the control socket (wire/agent.h), over which descriptors come: ends of
 * channels, which are served at once, and sockets of isolated commands, which wait for their
 * AGENT_EXEC. There is one struct control for the life of the agent; its sockets come and go.
 */
#pragma once

#include "wire/frame.h"

#include <stddef.h>
#include <stdint.h>

#define CONTROL_WAITING_MAX 32 /* isolated commands whose AGENT_EXEC has not come yet */

/* Serves the first frame of a channel; the descriptor stays the caller's. */
typedef void control_handler(void *context, int channel, const struct frame *frame);

struct control {
	int epoll_fd;
	int fd; /* -1: none */
	control_handler *serve;
	void *context;
	struct {
		uint32_t number;
		int fd;
	} waiting[CONTROL_WAITING_MAX]; /* the oldest is first */
	size_t waiting_count;
};

void control_init(struct control *control, int epoll_fd, control_handler *serve, void *context);

/* Takes fd as the new control socket, in place of the old one and of what waited. */
void control_open(struct control *control, int fd);

/* Receives what is there. */
void control_receive(struct control *control);

/* The socket for the isolated command of that id; -1 if none came. */
int control_take(struct control *control, uint32_t number);
