/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input of one command: bytes wait here until its pipe, or its terminal, takes them.
 *
 * Once nobody can read them any more (the command closed its input, or ended) they count as taken.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct inlet {
	int fd; /* the pipe; -1: bytes are thrown away */
	bool is_terminal;
	uint64_t received; /* bytes that came from the daemon, ever */
	uint64_t taken;	   /* how many of them left the queue */
	struct buf queue;  /* at most AGENT_STDIN_WINDOW, and what is typed */
	unsigned typed;	   /* ends of input in the queue, at most */
	bool ends;	   /* close the pipe when the queue is empty */
	bool watched;
};

/* Without anything to write to, which is what a command without standard input has. */
void inlet_init(struct inlet *inlet);

/* Takes fd, the nonblocking write end of a pipe. */
void inlet_open_pipe(struct inlet *inlet, int fd);

/* Uses the master of a terminal, which its owner watches, and closes after this inlet. */
void inlet_open_terminal(struct inlet *inlet, int master);
void inlet_fini(struct inlet *inlet);

/* -EPROTO when the sender went beyond its window. */
int inlet_add(struct inlet *inlet, const uint8_t *data, size_t len) must_check;

/* The end of the input: a pipe is closed behind the last byte, on a terminal ^D is typed. */
void inlet_end(struct inlet *inlet);

/* Writes what the pipe takes. When some is left, asks to be called again as WATCH_STDIN of id. */
void inlet_write(struct inlet *inlet, int epoll_fd, uint32_t id);

/* The reader is gone. */
void inlet_discard(struct inlet *inlet);
