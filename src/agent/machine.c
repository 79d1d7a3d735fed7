/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine.h"

#include "agent/watch.h"
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

static void (*const put[MACHINE_SHEETS])(const struct vitals *, struct buf *) = {
	vitals_put_meminfo, vitals_put_stat};

static void write_sheet(const struct machine *machine, size_t i)
{
	struct buf text = BUF_INIT(VITALS_TEXT_MAX);

	put[i](&machine->vitals, &text);
	/* In one piece and of the same length as before. Without memory it stays as it was. */
	(void)!pwrite(machine->sheets[i].fd, text.data, text.len, 0);
	buf_fini(&text);
}

/* Refused while anybody else has the file open. */
static void take_lease(struct machine *machine, size_t i)
{
	if (!machine->sheets[i].is_leased)
		machine->sheets[i].is_leased =
			fcntl(machine->sheets[i].fd, F_SETLEASE, F_WRLCK) == 0;
}

/* From now on it matters who reads and closes. */
static void open_inotify(struct machine *machine)
{
	if (machine->inotify_fd >= 0)
		return;
	machine->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (machine->inotify_fd < 0)
		return;
	for (size_t i = 0; i < MACHINE_SHEETS; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", machine->sheets[i].fd);
		(void)!inotify_add_watch(machine->inotify_fd, path, IN_ACCESS | IN_CLOSE_NOWRITE);
	}
	if (watch_add(machine->epoll_fd, machine->inotify_fd, EPOLLIN, WATCH_MACHINE, 0) < 0)
		fd_close(take_fd(&machine->inotify_fd));
}

void machine_open(struct machine *machine, int epoll_fd, const int sheets[MACHINE_SHEETS])
{
	sigset_t set;

	*machine = (struct machine){.epoll_fd = epoll_fd, .signal_fd = -1, .inotify_fd = -1};
	if (!sheets)
		return;
	vitals_init(&machine->vitals);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	machine->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (machine->signal_fd < 0 ||
		watch_add(epoll_fd, machine->signal_fd, EPOLLIN, WATCH_MACHINE, 0) < 0)
		return;
	for (size_t i = 0; i < MACHINE_SHEETS; i++) {
		machine->sheets[i].fd = sheets[i];
		(void)!fcntl(sheets[i], F_SETFD, FD_CLOEXEC);
		take_lease(machine, i);
		if (machine->sheets[i].is_leased)
			continue;
		write_sheet(machine, i);
		open_inotify(machine);
	}
}

/* Somebody waits for the file: writes it, lets go, and looks from now on. */
static void yield_lease(struct machine *machine, size_t i, uint64_t now)
{
	write_sheet(machine, i);
	open_inotify(machine);
	machine->sheets[i].is_leased = false;
	(void)!fcntl(machine->sheets[i].fd, F_SETLEASE, F_UNLCK);
	machine->due_ms = now + REFRESH_MS;
	machine->unread_ms = now + UNREAD_MS;
}

/* Whether a file was read or closed since the last time. */
static bool drain_inotify(const struct machine *machine)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool any = false;

	while (machine->inotify_fd >= 0 && read(machine->inotify_fd, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static bool all_are_leased(const struct machine *machine)
{
	bool all = true;

	for (size_t i = 0; i < MACHINE_SHEETS; i++)
		all &= machine->sheets[i].is_leased;
	return all;
}

void machine_ready(struct machine *machine)
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
		for (size_t i = 0; i < MACHINE_SHEETS; i++)
			take_lease(machine, i);
	}
	for (size_t i = 0; i < MACHINE_SHEETS; i++) {
		if (machine->sheets[i].is_leased &&
			fcntl(machine->sheets[i].fd, F_GETLEASE) != F_WRLCK)
			yield_lease(machine, i, now);
	}
}

int machine_patience_ms(const struct machine *machine)
{
	uint64_t now;

	if (machine->unread_ms == 0 || all_are_leased(machine))
		return -1;
	now = clock_steady_ms();
	if (now >= machine->unread_ms)
		return -1;
	return machine->due_ms > now ? (int)(machine->due_ms - now) : 0;
}

void machine_tick(struct machine *machine)
{
	if (machine_patience_ms(machine) != 0)
		return;
	for (size_t i = 0; i < MACHINE_SHEETS; i++) {
		take_lease(machine, i);
		if (!machine->sheets[i].is_leased)
			write_sheet(machine, i);
	}
	machine->due_ms = clock_steady_ms() + REFRESH_MS;
}
