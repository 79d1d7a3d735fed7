/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input of one command: bytes wait here until its pipe takes them.
 *
 * Once nobody can read them any more (the command closed its input, or ended) they count as taken.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct inlet {
	int fd;		  /* the pipe; -1: bytes are thrown away */
	uint64_t taken;	  /* bytes that left the queue, ever */
	struct buf queue; /* at most AGENT_STDIN_WINDOW */
	bool ends;	  /* close the pipe when the queue is empty */
	bool watched;
};

/* Takes fd, the nonblocking write end of the pipe; -1 for a command that has no such pipe. */
void inlet_init(struct inlet *inlet, int fd);
void inlet_fini(struct inlet *inlet);

/* -EPROTO when the sender went beyond its window. */
int inlet_add(struct inlet *inlet, const uint8_t *data, size_t len) must_check;
void inlet_end(struct inlet *inlet);

/* Writes what the pipe takes. When some is left, asks to be called again as WATCH_STDIN of id. */
void inlet_write(struct inlet *inlet, int epoll_fd, uint32_t id);

/* The reader is gone. */
void inlet_discard(struct inlet *inlet);
