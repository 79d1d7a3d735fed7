/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of commands: one for each, below the sandbox's own. Whoever descends from a command
 * is in its group, however often it forked or made a session, and cannot leave it.
 *
 * They are threaded groups. Only such a group can be below one that has processes (the agent), and a
 * process can put itself into one without waiting for the rest of the machine. In return the kernel
 * lists threads, not processes, and has no cgroup.kill: hence the rounds of group_kill().
 *
 * One empty group is kept for the next command: making and removing one takes 70 us, joining it 12.
 *
 * Without a directory (a keeper that is not root of the host may have none to give) there are no
 * groups: opening one gives one that group_is_real() denies, and all else does nothing.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct group {
	uint32_t number;   /* its name */
	int threads_fd;	   /* -1: it is not real */
	int cpu_fd;	   /* its cpu.stat */
	int events_fd;	   /* its cgroup.events, while it is watched */
	uint64_t spent_us; /* by the commands that had it before */
	bool is_frozen;	   /* for good: nobody who is in it comes out alive */
};

#define GROUP_NONE ((struct group){.threads_fd = -1, .cpu_fd = -1, .events_fd = -1})

struct group_tree {
	int dir_fd; /* -1: there are none */
	uint32_t next_number;
	struct group spare;   /* for the next command, if it is real */
	struct buf leftovers; /* numbers of groups that could not be removed yet */
};

/* The directory stays the caller's. */
void group_tree_init(struct group_tree *tree, int dir_fd);

/* Makes the spare one, while nobody waits. */
void group_prepare(struct group_tree *tree);

int group_open(struct group_tree *tree, struct group *ret_group) must_check;

/* Of a group that has nobody in it: keeps or removes it. */
void group_close(struct group_tree *tree, struct group *group);
bool group_is_real(const struct group *group);

/* How many processes are in it, not counting those that are dead and not yet buried. */
uint32_t group_count(const struct group *group);
uint64_t group_cpu_us(const struct group *group);

/* The number of the group that a thread is in; false if it is in none, or gone. */
bool group_of_thread(pid_t thread, uint32_t *ret_number) must_check;

/* A signal for each process in it, once. Not for SIGKILL. */
void group_signal(const struct group *group, int signal);

/*
 * Kills all there are, without giving them the time to fork. True if somebody was found: then call
 * again a little later, for the sake of one who was being born just then.
 */
bool group_kill(const struct group_tree *tree, struct group *group);

/* Asks for WATCH_GROUP of id when the last one may have left. 0 or -errno. */
int group_watch(const struct group_tree *tree, struct group *group, int epoll_fd, uint32_t id)
	must_check;

/* After WATCH_GROUP: so that it comes again. */
void group_heard(const struct group *group);

/* Removes what could not be removed before; whether some is left, and to call again. */
bool group_clean(struct group_tree *tree);
