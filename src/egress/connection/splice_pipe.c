/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/splice_pipe.h"

#include "base/fd.h"
#include "base/share_pool.h"

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
	/* The kernel refuses it to a user with many pipes; the default size works too. */
	(void)!fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

/* Only an empty pipe: the next user must not find foreign bytes. */
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

void splice_pipe_fini(struct splice_pipe *pipe)
{
	if (pipe->held > 0) {
		close(pipe->fds[0]);
		close(pipe->fds[1]);
		share_give_back(take_ptr(&pipe->share));
		pipe->held = 0;
	}
}

/* Reads from the writer into an empty pipe. SPLICE_PIPE_MORE: there are bytes to deliver. */
static enum splice_pipe_result fill(
	struct splice_pipe *pipe, const struct splice_pipe_supply *supply, int from, size_t budget)
{
	ssize_t n;

	if (share_pool_take(supply->places, supply->owner, supply->is_operators, &pipe->share) < 0)
		return SPLICE_PIPE_STARVES;
	if (take_pipe(supply->pipes, pipe->fds) < 0) {
		share_give_back(take_ptr(&pipe->share));
		return SPLICE_PIPE_BROKEN;
	}
	n = splice(from, NULL, pipe->fds[1], NULL, budget < PIPE_SIZE ? budget : PIPE_SIZE, FLAGS);
	if (n > 0) {
		pipe->held = (size_t)n;
		return SPLICE_PIPE_MORE;
	}
	return_pipe(supply->pipes, pipe->fds);
	share_give_back(take_ptr(&pipe->share));
	if (n == 0)
		pipe->is_ended = true;
	return n == 0 || errno == EAGAIN ? SPLICE_PIPE_WAITS : SPLICE_PIPE_BROKEN;
}

/* Delivers the bytes in the pipe. SPLICE_PIPE_MORE: all were delivered, and there may be more. */
static enum splice_pipe_result drain(
	struct splice_pipe *pipe, const struct splice_pipe_supply *supply, int to, size_t *budget)
{
	while (pipe->held > 0) {
		ssize_t n = splice(pipe->fds[0], NULL, to, NULL, pipe->held, FLAGS);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? SPLICE_PIPE_WAITS : SPLICE_PIPE_BROKEN;
		pipe->held -= (size_t)n;
		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	}
	return_pipe(supply->pipes, pipe->fds);
	share_give_back(take_ptr(&pipe->share));
	return SPLICE_PIPE_MORE;
}

enum splice_pipe_result splice_pipe_move(struct splice_pipe *pipe,
	const struct splice_pipe_supply *supply, int from, int to, size_t *budget)
{
	enum splice_pipe_result result = SPLICE_PIPE_MORE;

	while (result == SPLICE_PIPE_MORE && !pipe->is_ended) {
		if (pipe->held == 0 && *budget == 0)
			return SPLICE_PIPE_MORE;
		if (pipe->held == 0)
			result = fill(pipe, supply, from, *budget);
		if (result == SPLICE_PIPE_MORE)
			result = drain(pipe, supply, to, budget);
	}
	if (pipe->is_ended && !pipe->is_done) {
		pipe->is_done = true;
		shutdown(to, SHUT_WR);
	}
	return result;
}
