/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/helper.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHANNEL_FD 3

/*
 * The child. It unblocks signals, so that the shutdown of a sandbox need not wait for it; only
 * SIGPIPE stays blocked, because sendfile() has no MSG_NOSIGNAL.
 */
static _Noreturn void run(const struct oom_score *oom, const struct helper_task *task, int fd)
{
	struct helper_io helper_io;
	sigset_t blocked;
	int flags;

	if (oom_score_join_work(oom) < 0)
		_exit(1);
	if (fd != CHANNEL_FD && dup3(fd, CHANNEL_FD, O_CLOEXEC) < 0)
		_exit(1);
	syscall(SYS_close_range, CHANNEL_FD + 1, ~0u, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	umask(0);
	/* The daemon may have made both ends of the channel nonblocking. */
	flags = fcntl(CHANNEL_FD, F_GETFL);
	if (flags < 0 || fcntl(CHANNEL_FD, F_SETFL, flags & ~O_NONBLOCK) < 0)
		_exit(1);

	helper_io_init(&helper_io, CHANNEL_FD);
	task->serve(&helper_io, task->arg);
	_exit(helper_io_flush(&helper_io) < 0);
}

static int check_room(const struct helper_table *table, bool is_watch)
{
	if (is_watch && table->watches == HELPER_WATCH_MAX)
		return -EMFILE;
	return table->count == HELPER_MAX ? -EAGAIN : 0;
}

int helper_start(struct helper_table *table, const struct oom_score *oom,
	const struct helper_task *task, int channel)
{
	int r = check_room(table, task->is_watch);
	pid_t pid;

	if (r < 0)
		return r;
	oom_score_raise(oom);
	pid = fork();
	if (pid == 0)
		run(oom, task, channel);
	if (pid < 0) {
		r = -errno;
	} else {
		table->helpers[table->count++] = (struct helper){pid, task->is_watch};
		table->watches += task->is_watch;
	}
	oom_score_restore(oom);
	return r;
}

void helper_stopped(const struct helper_table *table, pid_t pid)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->helpers[i].pid == pid)
			kill(pid, SIGKILL);
	}
}

bool helper_end(struct helper_table *table, pid_t pid)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->helpers[i].pid == pid) {
			table->watches -= table->helpers[i].is_watch;
			table->helpers[i] = table->helpers[--table->count];
			return true;
		}
	}
	return false;
}
