/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that the daemon started, from AGENT_EXEC to AGENT_FORGET.
 *
 * Output flows pipe -> backlog -> link. Reading stops when the backlog's window is full, sending
 * when the link is; neither waits for the other. The exit of a command is recorded at once, and
 * told once all output that its pipes held at that moment has been sent.
 *
 * The functions named after a frame return 0, or -EPROTO for one that breaks the protocol. An id
 * that is not known is no error: the frame crossed the end of the command on its way.
 */
#pragma once

#include "agent/backlog.h"
#include "agent/inlet.h"
#include "agent/launch.h"
#include "agent/link.h"
#include "agent/watch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct process;

#define PROCESS_HEADS 64

struct process_table {
	struct process *heads[PROCESS_HEADS]; /* lists, by id */
	uint32_t count;
	bool closed; /* the sandbox shuts down: no new ones */
	int epoll_fd;
	struct link *link;
	struct launch_base base;
};

void process_table_init(struct process_table *table, int epoll_fd, struct link *link);

int process_exec(struct process_table *table, const struct frame *frame) must_check;
int process_stdin(struct process_table *table, const struct frame *frame) must_check;
int process_stdin_close(struct process_table *table, const struct frame *frame) must_check;
int process_signal(struct process_table *table, const struct frame *frame) must_check;
int process_ack(struct process_table *table, const struct frame *frame) must_check;
/* One that still runs is on its own from then on: its pipes are closed, its end is not told. */
int process_forget(struct process_table *table, const struct frame *frame) must_check;

/* A daemon attached: AGENT_HELLO, and all that was not acknowledged once more. */
void process_resume_all(struct process_table *table);

/* The link takes bytes again. */
void process_send_all(struct process_table *table);

/* An event on one of a command's pipes. */
void process_ready(struct process_table *table, enum watch_role role, uint32_t id, uint32_t events);

/* A child ended; false if it was none of the commands. */
bool process_end(
	struct process_table *table, pid_t pid, int wait_status, const struct rusage *usage);
