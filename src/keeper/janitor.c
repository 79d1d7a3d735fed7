/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/janitor.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void run_janitor(const struct storage *storage, int pokes)
{
	char bytes[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	do {
		storage_empty_trash(storage);
	} while (read(pokes, bytes, sizeof(bytes)) > 0);
	_exit(0);
}

void janitor_start(struct keeper *keeper)
{
	int pipe_fds[2];
	pid_t pid;

	keeper->janitor_fd = -1;
	keeper->janitor_pid = 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		log_error("no janitor: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid < 0) {
		log_error("no janitor: %s", strerror(errno));
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return;
	}
	if (pid == 0) {
		/* Removing a large file cannot be interrupted: see disk.c. */
		close(OFFICE_LISTEN_FD);
		close(keeper->lock_fd);
		close(pipe_fds[1]);
		run_janitor(&keeper->context.storage, pipe_fds[0]);
	}
	close(pipe_fds[0]);
	keeper->janitor_pid = pid;
	keeper->janitor_fd = pipe_fds[1];
	if (fd_set_nonblocking(keeper->janitor_fd) < 0)
		log_warning("janitor pipe stays blocking");
}

void janitor_poke(const struct keeper *keeper)
{
	/* A full pipe means that it has been poked already. */
	(void)!write(keeper->janitor_fd, "", 1);
}
