/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that the daemon started, from AGENT_EXEC to AGENT_FORGET, and on to the end of the
 * last process that came of them.
 *
 * Output flows pipe -> backlog -> link. Reading stops when the backlog's window is full, sending
 * when the link is; neither waits for the other. The exit of a command is recorded at once, and
 * told once all output that its pipes held at that moment has been sent.
 *
 * The functions named after a frame return 0, or -EPROTO for one that breaks the protocol. An id
 * that is not known is no error: the frame crossed the end of the command on its way.
 */
#pragma once

#include "agent/group.h"
#include "agent/launch.h"
#include "agent/scarcity.h"
#include "agent/uplink.h"
#include "agent/watch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct job;

#define JOB_HEADS 64

struct job_table {
	struct job *heads[JOB_HEADS]; /* lists, by id */
	uint32_t count;
	bool closed; /* the sandbox shuts down: no new ones */
	int epoll_fd;
	struct uplink *link;
	int denials_fd;	  /* listener of the sandbox's filter */
	uint64_t tick_ms; /* when job_tick() has something to do; 0: never */
	struct launch_base base;
	struct group_tree groups;
	struct scarcity scarcity;
};

/* What the keeper gives for commands; each may be -1. */
struct job_fds {
	int group; /* the directory of the sandbox's control group; without it commands get none */
	int score; /* see oom.h */
	int work;
	int denials; /* the listener of the filter they are under */
};

void job_table_init(
	struct job_table *table, int epoll_fd, const struct job_fds *fds, struct uplink *link);

int job_exec(struct job_table *table, const struct frame *frame) must_check;
int job_stdin(struct job_table *table, const struct frame *frame) must_check;
int job_stdin_close(struct job_table *table, const struct frame *frame) must_check;
int job_signal(struct job_table *table, const struct frame *frame) must_check;
int job_resize(struct job_table *table, const struct frame *frame) must_check;
int job_ack(struct job_table *table, const struct frame *frame) must_check;
/*
 * One that still runs is on its own from then on: its pipes are closed, its exit is not told. While
 * anybody is in its group it can be signalled, and the last one's end is told.
 */
int job_forget(struct job_table *table, const struct frame *frame) must_check;

/* Gets ready for the next command, while nobody waits. */
void job_prepare(struct job_table *table);

/* A daemon attached: AGENT_HELLO, and all that was not acknowledged once more. */
void job_resume_all(struct job_table *table);

/* The link takes bytes again. */
void job_send_all(struct job_table *table);

/* What has to be tried again for as long as it takes, such as killing. Milliseconds; -1: none. */
int job_patience_ms(const struct job_table *table);
void job_tick(struct job_table *table);

/* An event on one of a command's pipes, or in its group. */
void job_ready(struct job_table *table, enum watch_role role, uint32_t id, uint32_t events);

/*
 * Somebody waits for the answer to a call that the filter refuses, that of the cell of a command or (id 0)
 * the sandbox's own: gives it, and counts it.
 */
void job_deny(struct job_table *table, uint32_t id);

/* Whether commands run in cells, whose processes are nobody's children here. */
bool job_has_cells(const struct job_table *table);

/* The id of the command that a process came of, also after that has ended; 0 if of none. */
uint32_t job_of_process(const struct job_table *table, pid_t pid);

/* A child ended; false if it was none of the commands. */
bool job_end(struct job_table *table, pid_t pid, int wait_status, const struct rusage *usage);
