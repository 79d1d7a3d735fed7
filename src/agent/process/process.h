/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that the daemon started, from AGENT_EXEC to AGENT_FORGET, and on to the end of their
 * last process.
 *
 * Output flows pipe -> backlog -> link. Reading stops when the backlog's window is full, sending
 * when the link is; neither waits for the other. The exit of a command is recorded at once, and
 * reported once all output that its pipes had at that moment has been sent.
 *
 * The functions named after a frame return 0, or -EPROTO for a frame that breaks the protocol. An
 * unknown id is no error: the frame crossed the end of the command on its way.
 */
#pragma once

#include "agent/link/watch.h"
#include "agent/process/process_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* What the keeper passes for commands; each may be -1. */
struct process_fds {
	int group; /* the directory of the sandbox's cgroup; without it commands have none */
	int score; /* see oom_score.h */
	int work;
	int denials; /* the listener of the seccomp filter */
};

void process_table_init(struct process_table *table, int epoll_fd, const struct process_fds *fds,
	struct daemon_link *link, struct control *control);

int process_exec(struct process_table *table, const struct frame *frame) must_check;
int process_stdin(struct process_table *table, const struct frame *frame) must_check;
int process_stdin_close(struct process_table *table, const struct frame *frame) must_check;
int process_signal(struct process_table *table, const struct frame *frame) must_check;
int process_resize(struct process_table *table, const struct frame *frame) must_check;
int process_ack(struct process_table *table, const struct frame *frame) must_check;
/*
 * Forgets a command. If it still runs, its pipes are closed and its exit is not reported. While its
 * cgroup has processes they can be signalled, and the end of the last is reported.
 */
int process_forget(struct process_table *table, const struct frame *frame) must_check;

/* AGENT_USAGE. */
int process_tell_usage(struct process_table *table, const struct frame *frame) must_check;

/* Prepares for the next command; called when the loop is idle. */
void process_prepare(struct process_table *table);

/* Called when a daemon attached: sends AGENT_HELLO, and all that was not acknowledged once more. */
void process_resume_all(struct process_table *table);

/* Called when the link takes bytes again. */
void process_send_all(struct process_table *table);

/* How long until an operation such as a kill has to be repeated. Milliseconds; -1: none. */
int process_patience_ms(const struct process_table *table);
void process_tick(struct process_table *table);

/* Handles an event of a command's pipe or cgroup. */
void process_ready(struct process_table *table, enum watch_role role, uint32_t id, uint32_t events);

/*
 * Answers and counts a call that a filter refuses: that of the isolated command with this id, or
 * (id 0) the sandbox's own.
 */
void process_deny(struct process_table *table, uint32_t id);

/* Whether isolated commands run, whose processes are not the agent's children. */
bool process_has_isolated(const struct process_table *table);

/* The id of the command that a process descends from, also after that has ended; 0 if of none. */
uint32_t process_of_process(const struct process_table *table, pid_t pid);

/* Notes that a child ended; false if it was not the main process of a command. */
bool process_end(
	struct process_table *table, pid_t pid, int wait_status, const struct rusage *usage);
