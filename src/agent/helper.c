/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/helper.h"

#include "agent/dialog.h"
#include "agent/file.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHANNEL_FD 3

static int (*const operations[])(struct dialog *, const struct payload_file *) = {
	[AGENT_FILE_STAT] = file_stat,
	[AGENT_FILE_READ] = file_read,
	[AGENT_FILE_WRITE] = file_write,
	[AGENT_FILE_LIST] = file_list,
	[AGENT_FILE_MKDIR] = file_mkdir,
	[AGENT_FILE_MOVE] = file_move,
	[AGENT_FILE_REMOVE] = file_remove,
	[AGENT_FILE_PACK] = file_pack,
	[AGENT_FILE_UNPACK] = file_unpack,
	[AGENT_FILE_WATCH] = file_watch,
};

/*
 * The child. Signals are let through again, so that a sandbox that is shut down need not wait for
 * it; only SIGPIPE stays blocked, because sendfile() has no MSG_NOSIGNAL.
 */
static _Noreturn void run(const struct oom *oom, const struct payload_file *request, int fd)
{
	struct dialog dialog;
	sigset_t blocked;
	int flags;
	int r;

	if (oom_join_work(oom) < 0)
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

	dialog_init(&dialog, CHANNEL_FD);
	r = request->path[0] == '/' ? operations[request->op](&dialog, request) : -EINVAL;
	if (r < 0)
		dialog_put_failure(&dialog, -r, "");
	_exit(dialog_flush(&dialog) < 0);
}

static void refuse(int fd, int errnum)
{
	struct dialog dialog;

	dialog_init(&dialog, fd);
	dialog_put_failure(&dialog, errnum, "");
	/* A new channel has room for one answer; if not, its end is answer enough. */
	if (fd_set_nonblocking(fd) == 0 && dialog_flush(&dialog) < 0)
		errno = 0;
	dialog_fini(&dialog);
}

/* 0, or the errnum that refuses another helper. */
static int check_room(const struct helper_table *table, bool is_watch)
{
	if (is_watch && table->watches == HELPER_WATCH_MAX)
		return EMFILE;
	return table->count == HELPER_MAX ? EAGAIN : 0;
}

void helper_start(struct helper_table *table, const struct oom *oom,
	const struct payload_file *request, int channel)
{
	bool is_watch = request->op == AGENT_FILE_WATCH;
	int errnum = check_room(table, is_watch);
	pid_t pid;

	if (errnum) {
		refuse(channel, errnum);
		fd_close(channel);
		return;
	}
	oom_raise(oom);
	pid = fork();
	if (pid == 0)
		run(oom, request, channel);
	if (pid < 0) {
		refuse(channel, errno);
	} else {
		table->helpers[table->count++] = (struct helper){pid, is_watch};
		table->watches += is_watch;
	}
	oom_restore(oom);
	fd_close(channel);
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
