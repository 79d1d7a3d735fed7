/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a connection: bytes go from one socket to another without being copied, through a
 * pipe. A lane has a pipe only while something is in it, so that one which rests costs nothing; and it
 * takes no more before all of that is delivered, so that a slow reader slows its writer.
 */
#pragma once

#include "base/err.h"

/* Pipes that nobody uses at the moment. */
#define PIPES_KEPT 64
struct pipes {
	int fds[PIPES_KEPT][2];
	size_t count;
};

void pipes_fini(struct pipes *pipes);

struct lane {
	int pipe[2];
	size_t held;   /* bytes in the pipe; if there are none there is no pipe */
	bool is_ended; /* the writer has no more */
	bool is_done;  /* and the reader was told */
};

enum lane_result {
	LANE_WAITS,  /* for one of the sockets */
	LANE_MORE,   /* the budget is used up */
	LANE_BROKEN, /* a socket failed */
};

void lane_fini(struct lane *lane);

/* Moves up to *budget bytes and takes from it what was moved. */
enum lane_result lane_move(
	struct lane *lane, struct pipes *pipes, int from, int to, size_t *budget);
