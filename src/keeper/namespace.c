/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Says that it is there, and waits to be let go. */
static void hold(const struct namespace_job *job, void *arg, int sock)
{
	int r = job->enter(arg);
	char done;

	if (r < 0)
		_exit(-r);
	if (write(sock, "", 1) == 1)
		(void)!read(sock, &done, 1);
	_exit(0);
}

static int open_of(
	const struct namespace_job *job, pid_t child, void *arg, int *ret_fd, struct err *err)
{
	char path[48];
	int r = job->adjust ? job->adjust(child, arg, err) : 0;

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", child, job->file);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

int namespace_make(const struct namespace_job *job, void *arg, int *ret_fd, struct err *err)
{
	int pair[2], status = 0, r;
	char ready = 0;
	bool made;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	child = fork();
	if (child == 0) {
		close(pair[0]);
		hold(job, arg, pair[1]);
	}
	close(pair[1]);
	made = child > 0 && read(pair[0], &ready, 1) == 1;
	r = made ? open_of(job, child, arg, ret_fd, err) : -EIO;
	close(pair[0]);
	if (child < 0)
		return err_sys(err, "fork");
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!made) {
		errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
		return err_sys(err, "make a %s namespace", job->file);
	}
	return r;
}
