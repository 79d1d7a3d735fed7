/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/namespace.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Our number in /proc, which is not that of getpid() where /proc is of an outer PID namespace. */
static pid_t number_in_proc(void)
{
	char text[16] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 ? (pid_t)strtol(text, NULL, 10)
								  : getpid();
}

/* Reports that the namespace exists, and waits until the parent has its descriptor. */
static void hold(const struct namespace_job *process, void *arg, int sock)
{
	pid_t own = number_in_proc();
	int r = process->enter(arg);
	char done;

	if (r < 0)
		_exit(-r);
	if (write(sock, &own, sizeof(own)) == sizeof(own))
		(void)!read(sock, &done, 1);
	_exit(0);
}

static int open_of(
	const struct namespace_job *process, pid_t child, void *arg, int *ret_fd, struct err *err)
{
	char path[48];
	int r = process->adjust ? process->adjust(child, arg, err) : 0;

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", child, process->file);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

int namespace_make(const struct namespace_job *process, void *arg, int *ret_fd, struct err *err)
{
	int pair[2], status = 0, r;
	bool made;
	pid_t child, number = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	child = fork();
	if (child == 0) {
		close(pair[0]);
		hold(process, arg, pair[1]);
	}
	close(pair[1]);
	made = child > 0 && read(pair[0], &number, sizeof(number)) == sizeof(number);
	r = made ? open_of(process, number, arg, ret_fd, err) : -EIO;
	close(pair[0]);
	if (child < 0)
		return err_sys(err, "fork");
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!made) {
		errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
		return err_sys(err, "make a %s namespace", process->file);
	}
	return r;
}
