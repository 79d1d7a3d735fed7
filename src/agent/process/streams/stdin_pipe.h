/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input of one command: bytes wait here until its pipe, or its terminal, takes them.
 *
 * Once no process can read them any more (the command closed its input, or ended) they count as
 * taken.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct stdin_pipe {
	int fd; /* the pipe; -1: bytes are dropped */
	bool is_terminal;
	uint64_t received; /* bytes that came from the daemon, ever */
	uint64_t taken;	   /* how many of them left the queue */
	struct buf queue;  /* at most AGENT_STDIN_WINDOW, and what is typed */
	unsigned typed;	   /* ends of input in the queue, at most */
	bool ends;	   /* close the pipe when the queue is empty */
	bool watched;
};

/* With no descriptor, as for a command without standard input. */
void stdin_pipe_init(struct stdin_pipe *stdin_pipe);

/* Takes fd, the nonblocking write end of a pipe. */
void stdin_pipe_open_pipe(struct stdin_pipe *stdin_pipe, int fd);

/* Uses the master of a terminal, which its owner watches and closes later than this stdin_pipe. */
void stdin_pipe_open_terminal(struct stdin_pipe *stdin_pipe, int master);
void stdin_pipe_fini(struct stdin_pipe *stdin_pipe);

/* -EPROTO when the sender went beyond its window. */
int stdin_pipe_add(struct stdin_pipe *stdin_pipe, const uint8_t *data, size_t len) must_check;

/* Ends the input: closes a pipe behind the last byte, types ^D on a terminal. */
void stdin_pipe_end(struct stdin_pipe *stdin_pipe);

/* Writes what the pipe takes. When some is left, asks to be called again as WATCH_STDIN of id. */
void stdin_pipe_write(struct stdin_pipe *stdin_pipe, int epoll_fd, uint32_t id);

/* Called when the reader is gone. */
void stdin_pipe_discard(struct stdin_pipe *stdin_pipe);
