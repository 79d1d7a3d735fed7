/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/meminfo and /proc/stat of the sandbox, which are files that the agent writes.
 *
 * It writes them when somebody looks. It holds a lease on each: whoever opens one waits until the lease
 * is given up, which happens once the file is written. So what is read is true at the moment of the
 * open, and neither a command nor an idle sandbox pays for it. The lease is taken again when the file
 * was closed.
 *
 * A program that keeps a file open and reads it again and again cannot be made to wait. For it, and
 * where leases are turned off, the file is written every quarter of a second, until nobody has read it
 * for a while; reading begins that anew.
 */
#pragma once

#include "agent/vitals.h"

#define MACHINE_SHEETS 2 /* meminfo, stat */

struct machine {
	struct {
		int fd;
		bool is_leased;
	} sheets[MACHINE_SHEETS];
	int signal_fd;	/* the kernel asks for a lease; -1: there are no files */
	int inotify_fd; /* a file was read or closed; -1 until one has been opened */
	int epoll_fd;
	uint64_t due_ms;    /* when files that are held open are written next */
	uint64_t unread_ms; /* when to stop that */
	struct vitals vitals;
};

/* Takes the descriptors; NULL for none. All signals are blocked. */
void machine_open(struct machine *machine, int epoll_fd, const int sheets[MACHINE_SHEETS]);

/* Something about the files happened (WATCH_MACHINE). */
void machine_ready(struct machine *machine);

/* How long until machine_tick() has something to do; -1: until the next event. */
int machine_patience_ms(const struct machine *machine);
void machine_tick(struct machine *machine);
