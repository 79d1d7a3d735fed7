/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups of commands: one for each, below the sandbox's own. All descendants of a command are in
 * its group, however often they forked or made a session, and cannot leave it.
 *
 * They are threaded groups. Only such a group can be below one that has processes (the agent), and
 * a process can put itself into one without waiting for the rest of the machine. In return the
 * kernel lists threads, not processes, and has no cgroup.kill: hence the rounds of
 * process_cgroup_kill().
 *
 * One empty group is kept for the next command: making and removing one takes 70 us, joining it 12.
 *
 * Without a directory (a keeper that is not root of the host may have none to pass) there are no
 * groups: opening one gives a group for which process_cgroup_is_real() is false, and the other
 * functions do nothing.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_cgroup {
	uint32_t number;   /* its name */
	int threads_fd;	   /* -1: there is no group */
	int cpu_fd;	   /* its cpu.stat */
	int events_fd;	   /* its cgroup.events, while it is watched */
	uint64_t spent_us; /* by the commands that used it before */
	bool is_frozen;	   /* for good: no process in it survives */
};

#define PROCESS_CGROUP_NONE                                                                        \
	((struct process_cgroup){.threads_fd = -1, .cpu_fd = -1, .events_fd = -1})

struct process_cgroups {
	int dir_fd; /* -1: there are no groups */
	uint32_t next_number;
	struct process_cgroup next_group; /* for the next command, if it is real */
	struct buf leftovers;		  /* numbers of groups that could not be removed yet */
};

/* The caller keeps the directory. */
void process_cgroups_init(struct process_cgroups *tree, int dir_fd);

/* Makes the group for the next command; called when the loop is idle. */
void process_cgroup_prepare(struct process_cgroups *tree);

int process_cgroup_open(struct process_cgroups *tree, struct process_cgroup *ret_group) must_check;

/* Keeps an empty group for the next command, or removes it. */
void process_cgroup_close(struct process_cgroups *tree, struct process_cgroup *group);
bool process_cgroup_is_real(const struct process_cgroup *group);

/* How many processes are in it, not counting dead ones that were not reaped. */
uint32_t process_cgroup_count(const struct process_cgroup *group);
uint64_t process_cgroup_cpu_us(const struct process_cgroup *group);

/* The number of the group that a thread is in; false if it is in none, or gone. */
bool process_cgroup_of_thread(pid_t thread, uint32_t *ret_number) must_check;

/* Signals each process in it once. Not for SIGKILL. */
void process_cgroup_signal(const struct process_cgroup *group, int signal);

/*
 * Kills all processes in it, without giving them the time to fork. True if any was found: then call
 * again a little later, for a child that was being forked just then.
 */
bool process_cgroup_kill(const struct process_cgroups *tree, struct process_cgroup *group);

/* Asks for WATCH_GROUP of id when the last process may have ended. 0 or -errno. */
int process_cgroup_watch(const struct process_cgroups *tree, struct process_cgroup *group,
	int epoll_fd, uint32_t id) must_check;

/* Called after WATCH_GROUP, so that it comes again. */
void process_cgroup_heard(const struct process_cgroup *group);

/* Removes groups that could not be removed before; true if some are left: then call again. */
bool process_cgroup_clean(struct process_cgroups *tree);
