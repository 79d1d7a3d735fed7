/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a relayed connection: splice(2) moves bytes from one socket to another through a
 * pipe, without copying them. A pipe is held only while bytes are in it, so an idle connection
 * costs nothing. No more is read before all of them are delivered, so a slow reader slows its
 * writer.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct share;
struct share_pool;

/* Idle pipes. */
#define PIPES_KEPT 16
struct pipes {
	int fds[PIPES_KEPT][2];
	size_t count;
};

void pipes_fini(struct pipes *pipes);

/* Where pipes come from; owners share the places for pipes in use. */
struct splice_pipe_supply {
	struct pipes *pipes;
	struct share_pool *places;
	uint64_t owner;
	bool is_operators;
};

struct splice_pipe {
	int fds[2];
	struct share *share; /* of the pipe in use */
	size_t held;	     /* bytes in the pipe; 0: no pipe is held */
	bool is_ended;	     /* the writer has no more */
	bool is_done;	     /* and the reader's socket was shut down for writing */
};

enum splice_pipe_result {
	SPLICE_PIPE_WAITS,   /* for one of the sockets */
	SPLICE_PIPE_STARVES, /* for a pipe: its owner has too many that are not read */
	SPLICE_PIPE_MORE,    /* the budget is used up */
	SPLICE_PIPE_BROKEN,  /* a socket failed */
};

void splice_pipe_fini(struct splice_pipe *pipe);

/* Moves up to *budget bytes and subtracts them from it. */
enum splice_pipe_result splice_pipe_move(struct splice_pipe *pipe,
	const struct splice_pipe_supply *supply, int from, int to, size_t *budget);
