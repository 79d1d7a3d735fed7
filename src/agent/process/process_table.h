/* SPDX-License-Identifier: Apache-2.0 */
/* One command, and the table of all, for process.c and survivors.c. */
#pragma once

#include "agent/link/control.h"
#include "agent/link/daemon_link.h"
#include "agent/process/limit_hits.h"
#include "agent/process/process_cgroup.h"
#include "agent/process/report.h"
#include "agent/process/start/isolated_process.h"
#include "agent/process/start/spawn.h"
#include "agent/process/streams/process_streams.h"

#define PROCESS_HEADS 64

struct process_table {
	struct process *heads[PROCESS_HEADS]; /* lists, by id */
	uint32_t count;
	bool closed; /* the sandbox shuts down: no new commands */
	int epoll_fd;
	struct daemon_link *link;
	struct control *control; /* has sockets of isolated commands */
	int denials_fd;		 /* listener of the sandbox's filter */
	uint64_t tick_ms;	 /* when process_tick() has something to do; 0: never */
	struct spawn_base base;
	struct process_cgroups groups;
	struct limit_hits limit_hits;
};

struct process {
	struct process *next;
	uint32_t id;
	pid_t pid;
	uint64_t started_us;
	struct process_streams streams;
	struct process_cgroup group; /* closed when the main process and all others are gone */
	struct limit_hits_counts before;
	bool is_killing;
	bool is_forgotten;
	bool ended;
	bool end_sent;
	bool had_survivors;
	bool none_sent;	       /* the daemon knows that no process is left */
	struct report_end end; /* as far as it is known */
	struct isolated_process isolated;
};

/* Has process_tick() called soon. */
void process_try_again_later(struct process_table *table);
