/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of what a command writes to: a pipe, or the master of its terminal.
 *
 * The watch on it is edge-triggered: once a read has emptied it, the next byte brings an event.
 */
#pragma once

#include "agent/backlog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outlet {
	int fd; /* -1: at its end */
	bool is_terminal;
	bool readable; /* since the last event no read found it empty */
	bool hung_up;  /* read up to the end of the file */
	bool draining; /* the command ended: only what was there then is read */
	size_t left;   /* how much that is, at most */
};

#define OUTLET_INIT ((struct outlet){.fd = -1})

void outlet_close(struct outlet *outlet);

/* An epoll event. */
void outlet_wake(struct outlet *outlet, uint32_t events);

/* Reads once into the backlog, if there is room and something may be there. */
void outlet_read(struct outlet *outlet, enum backlog_stream stream, struct backlog *backlog);

/* The command ended. A child that keeps the other end may go on writing: that is not read. */
void outlet_drain(struct outlet *outlet);
