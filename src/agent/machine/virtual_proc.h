/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/meminfo and /proc/stat of the sandbox, which are files that the agent writes.
 *
 * It writes a file when a program opens it. It holds a lease on each: a program that opens one
 * waits until the agent gives up the lease, once the file is written. So the text is true at the
 * moment of the open, and neither a command nor an idle sandbox pays for it. The agent takes the
 * lease again when the file was closed.
 *
 * The kernel does not make a program wait that keeps a file open and reads it again and again. For
 * such a program, and where leases are turned off, the agent writes the file every quarter of a
 * second, until no program has read it for a while; the next read starts that again.
 */
#pragma once

#include "agent/machine/proc_text.h"

#define VIRTUAL_PROC_FILES 2 /* meminfo, stat */

struct virtual_proc {
	struct {
		int fd;
		bool is_leased;
	} proc_files[VIRTUAL_PROC_FILES];
	int signal_fd;	/* the kernel wants a lease back; -1: there are no files */
	int inotify_fd; /* a file was read or closed; -1 until one has been opened */
	int epoll_fd;
	uint64_t due_ms;    /* when files that are kept open are written next */
	uint64_t unread_ms; /* when to stop that */
	struct proc_text proc_text;
};

/* Takes the descriptors; NULL for none. All signals are blocked. */
void virtual_proc_open(
	struct virtual_proc *machine, int epoll_fd, const int proc_files[VIRTUAL_PROC_FILES]);

/* Called when something about the files happened (WATCH_MACHINE). */
void virtual_proc_ready(struct virtual_proc *machine);

/* How long until virtual_proc_tick() has something to do; -1: until the next event. */
int virtual_proc_patience_ms(const struct virtual_proc *machine);
void virtual_proc_tick(struct virtual_proc *machine);
