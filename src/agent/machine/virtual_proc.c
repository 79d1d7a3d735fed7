/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/virtual_proc.h"

#include "agent/link/watch.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define REFRESH_MS 250
#define UNREAD_MS  5000 /* more than the 3 s between two frames of top */

static void (*const put[VIRTUAL_PROC_FILES])(const struct proc_text *, struct buf *) = {
	proc_text_put_meminfo, proc_text_put_stat};

static void write_sheet(const struct virtual_proc *machine, size_t i)
{
	struct buf text = BUF_INIT(PROC_TEXT_TEXT_MAX);

	put[i](&machine->proc_text, &text);
	/* Written in one piece and of the same length as before. Without memory the file keeps
	 * its old text. */
	(void)!pwrite(machine->proc_files[i].fd, text.data, text.len, 0);
	buf_fini(&text);
}

/* The kernel refuses it while another process has the file open. */
static void take_lease(struct virtual_proc *machine, size_t i)
{
	if (!machine->proc_files[i].is_leased)
		machine->proc_files[i].is_leased =
			fcntl(machine->proc_files[i].fd, F_SETLEASE, F_WRLCK) == 0;
}

/* From now on reads and closes matter. */
static void open_inotify(struct virtual_proc *machine)
{
	if (machine->inotify_fd >= 0)
		return;
	machine->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (machine->inotify_fd < 0)
		return;
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", machine->proc_files[i].fd);
		(void)!inotify_add_watch(machine->inotify_fd, path, IN_ACCESS | IN_CLOSE_NOWRITE);
	}
	if (watch_add(machine->epoll_fd, machine->inotify_fd, EPOLLIN, WATCH_MACHINE, 0) < 0)
		fd_close(take_fd(&machine->inotify_fd));
}

void virtual_proc_open(
	struct virtual_proc *machine, int epoll_fd, const int proc_files[VIRTUAL_PROC_FILES])
{
	sigset_t set;

	*machine = (struct virtual_proc){.epoll_fd = epoll_fd, .signal_fd = -1, .inotify_fd = -1};
	if (!proc_files)
		return;
	proc_text_init(&machine->proc_text);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	machine->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (machine->signal_fd < 0 ||
		watch_add(epoll_fd, machine->signal_fd, EPOLLIN, WATCH_MACHINE, 0) < 0)
		return;
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		machine->proc_files[i].fd = proc_files[i];
		(void)!fcntl(proc_files[i], F_SETFD, FD_CLOEXEC);
		take_lease(machine, i);
		if (machine->proc_files[i].is_leased)
			continue;
		write_sheet(machine, i);
		open_inotify(machine);
	}
}

/* A program waits for the file: writes it, gives up the lease, and watches the file from now on. */
static void yield_lease(struct virtual_proc *machine, size_t i, uint64_t now)
{
	write_sheet(machine, i);
	open_inotify(machine);
	machine->proc_files[i].is_leased = false;
	(void)!fcntl(machine->proc_files[i].fd, F_SETLEASE, F_UNLCK);
	machine->due_ms = now + REFRESH_MS;
	machine->unread_ms = now + UNREAD_MS;
}

/* Whether a file was read or closed since the last time. */
static bool drain_inotify(const struct virtual_proc *machine)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool any = false;

	while (machine->inotify_fd >= 0 && read(machine->inotify_fd, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static bool all_are_leased(const struct virtual_proc *machine)
{
	bool all = true;

	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++)
		all &= machine->proc_files[i].is_leased;
	return all;
}

void virtual_proc_ready(struct virtual_proc *machine)
{
	uint64_t now = clock_steady_ms();
	struct signalfd_siginfo info;
	bool was_quiet = now >= machine->unread_ms;

	while (read(machine->signal_fd, &info, sizeof(info)) > 0)
		;
	if (drain_inotify(machine)) {
		machine->unread_ms = now + UNREAD_MS;
		if (was_quiet)
			machine->due_ms = now;
		for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++)
			take_lease(machine, i);
	}
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		if (machine->proc_files[i].is_leased &&
			fcntl(machine->proc_files[i].fd, F_GETLEASE) != F_WRLCK)
			yield_lease(machine, i, now);
	}
}

int virtual_proc_patience_ms(const struct virtual_proc *machine)
{
	uint64_t now;

	if (machine->unread_ms == 0 || all_are_leased(machine))
		return -1;
	now = clock_steady_ms();
	if (now >= machine->unread_ms)
		return -1;
	return machine->due_ms > now ? (int)(machine->due_ms - now) : 0;
}

void virtual_proc_tick(struct virtual_proc *machine)
{
	if (virtual_proc_patience_ms(machine) != 0)
		return;
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		take_lease(machine, i);
		if (!machine->proc_files[i].is_leased)
			write_sheet(machine, i);
	}
	machine->due_ms = clock_steady_ms() + REFRESH_MS;
}
