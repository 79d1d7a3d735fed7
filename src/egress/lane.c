/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/lane.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE_SIZE (512 << 10) /* half of it is half as fast */
#define FLAGS	  (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

static int take_pipe(struct pipes *pipes, int fds[2])
{
	if (pipes->count > 0) {
		pipes->count--;
		fds[0] = pipes->fds[pipes->count][0];
		fds[1] = pipes->fds[pipes->count][1];
		return 0;
	}
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	/* Refused to a user who has many; the usual size does too. */
	(void)!fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

/* Only an empty one: the next to use it must not find what is somebody else's. */
static void return_pipe(struct pipes *pipes, int fds[2])
{
	if (pipes->count == PIPES_KEPT) {
		close(fds[0]);
		close(fds[1]);
		return;
	}
	pipes->fds[pipes->count][0] = fds[0];
	pipes->fds[pipes->count][1] = fds[1];
	pipes->count++;
}

void pipes_fini(struct pipes *pipes)
{
	while (pipes->count > 0) {
		pipes->count--;
		close(pipes->fds[pipes->count][0]);
		close(pipes->fds[pipes->count][1]);
	}
}

void lane_fini(struct lane *lane)
{
	if (lane->held > 0) {
		close(lane->pipe[0]);
		close(lane->pipe[1]);
		lane->held = 0;
	}
}

/* Takes more from the writer into an empty pipe. LANE_MORE: there is something to deliver. */
static enum lane_result fill(struct lane *lane, struct pipes *pipes, int from, size_t budget)
{
	ssize_t n;

	if (take_pipe(pipes, lane->pipe) < 0)
		return LANE_BROKEN;
	n = splice(from, NULL, lane->pipe[1], NULL, budget < PIPE_SIZE ? budget : PIPE_SIZE, FLAGS);
	if (n > 0) {
		lane->held = (size_t)n;
		return LANE_MORE;
	}
	return_pipe(pipes, lane->pipe);
	if (n == 0)
		lane->is_ended = true;
	return n == 0 || errno == EAGAIN ? LANE_WAITS : LANE_BROKEN;
}

/* Delivers what the pipe holds. LANE_MORE: all of it, and there may be more. */
static enum lane_result drain(struct lane *lane, struct pipes *pipes, int to, size_t *budget)
{
	while (lane->held > 0) {
		ssize_t n = splice(lane->pipe[0], NULL, to, NULL, lane->held, FLAGS);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? LANE_WAITS : LANE_BROKEN;
		lane->held -= (size_t)n;
		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	}
	return_pipe(pipes, lane->pipe);
	return LANE_MORE;
}

enum lane_result lane_move(struct lane *lane, struct pipes *pipes, int from, int to, size_t *budget)
{
	enum lane_result result = LANE_MORE;

	while (result == LANE_MORE && !lane->is_ended) {
		if (lane->held == 0 && *budget == 0)
			return LANE_MORE;
		if (lane->held == 0)
			result = fill(lane, pipes, from, *budget);
		if (result == LANE_MORE)
			result = drain(lane, pipes, to, budget);
	}
	if (lane->is_ended && !lane->is_done) {
		lane->is_done = true;
		shutdown(to, SHUT_WR);
	}
	return result;
}
