/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of what a command writes to: a pipe, or the master of its terminal.
 *
 * The watch on it is edge-triggered: once a read has emptied it, the next byte brings an event.
 */
#pragma once

#include "agent/link/output_backlog.h"
#include "agent/process/streams/output_tail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_pipe {
	int fd; /* -1: at its end */
	bool is_terminal;
	bool readable; /* since the last event no read found it empty */
	bool hung_up;  /* read up to the end of the file */
	bool draining; /* the command ended: only what was there then is read */
	size_t left;   /* how much that is, at most */
};

#define OUTPUT_PIPE_INIT ((struct output_pipe){.fd = -1})

void output_pipe_close(struct output_pipe *output_pipe);

/* Takes the events of epoll. */
void output_pipe_wake(struct output_pipe *output_pipe, uint32_t events);

/* Reads once into the backlog, at most max bytes, if there is room and something may be there; the tail
 * gets the end of it. */
void output_pipe_read(struct output_pipe *output_pipe, size_t max,
	enum output_backlog_stream stream, struct output_backlog *backlog,
	struct output_tail *tail);

/* Called when the command ended. What a child writes to the other end afterwards is not read. */
void output_pipe_drain(struct output_pipe *output_pipe);
