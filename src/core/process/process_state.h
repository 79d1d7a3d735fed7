/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a process, for process*.c, start_command*.c, ready_check.c and exit_reason.c only. */
#pragma once

#include "base/buf.h"
#include "core/engine/agent_link.h"
#include "core/engine/sandbox_state.h"
#include "core/output/output_log.h"
#include "core/process/process_events.h"
#include "event/timer.h"

#include <pthread.h>
#include <stdatomic.h>

struct process_watcher {
	atomic_int refs;
	struct process_watcher *next;
	const struct process_events *events;
	void *arg;
};

/* What is known of its use of processors (process_usage.h); under process.lock. */
struct process_usage {
	uint64_t asked_us;
	uint64_t at_us, cpu_us; /* the last answer */
	struct {
		uint64_t at_us, cpu_us;
	} before[2]; /* answers of the rounds before, the older first */
};

struct start_command;

/* What the start command of a process is told of it. */
struct process_starter {
	void (*started)(struct start_command *command, uint32_t process);
	void (*ended)(struct start_command *command, const struct process_end *end);
	void (*unref)(struct start_command *command);
};

struct process {
	atomic_int refs;
	struct process *next; /* in sandbox.processes; under sandbox.state */
	struct sandbox *sandbox;
	struct agent_link *link;
	struct output_log *log; /* NULL: not kept */
	struct share *share;	/* its place among those that are kept; NULL: it has none */
	struct start_command
		*start_command; /* of the start command that it runs, or NULL; counted */
	const struct process_starter *starter; /* of the same */
	bool is_adopted;		       /* a daemon before us started it */
	bool is_titled;	 /* its record has a title in the place of its program */
	bool has_result; /* it may write to its descriptor for results */
	bool is_probe;	 /* it checks a member's health, and keeps nobody awake */
	uint64_t started_us;

	/* The event loop's thread only. */
	uint64_t offset; /* of the next output byte */
	bool timed_out;
	bool is_known; /* an adopted one: the agent named it in its hello */

	pthread_mutex_t
		row; /* held while the record is written down: an old one never comes last */
	pthread_mutex_t lock; /* what follows */
	struct process_record record;
	struct process_usage usage;
	struct process_end end; /* once it is ending */
	struct process_watcher *watchers;
	struct timer *timer;
	struct buf input; /* not sent yet */
	uint64_t input_sent, input_taken;
	bool input_ends; /* an end of file follows the byte before input_end */
	uint64_t input_end;
	unsigned pacers; /* readers that it waits for: the fastest of them */
	uint64_t consumed, acked;
	uint64_t shown; /* output before this was sent to a terminal of somebody's */
	bool started, running, killed;
	bool killed_tree; /* with all that came of it */
	bool is_waiting;  /* waits for the output rate */
	bool ending;	  /* its end is being written down */
	bool concluded;	  /* its end is being reported: no watch can be added */
	bool reported;	  /* all who watched have heard of it */
};

#define PROCESS_INPUT_MAX  (1u << 20)	/* standard input that waits, */
#define PROCESS_RUNNER_MAX (256u << 10) /* and the runner of an execution before it */

/* One that has no spec: found by process_table.c in the database. */
struct process *process_make(struct sandbox *sandbox, struct agent_link *link);

/* Its agent has it: from now on it can be killed, and that may have been asked for already. */
void process_note_running(struct process *process);

/* Sends a frame. One that cannot be sent means that the link is gone, and its loss ends the process. */
void process_tell(struct process *process, uint16_t kind, const void *payload, size_t len);

bool process_has_survivors(struct process *process);

/* Opens its log in the sandbox's directory. */
int process_open_log(struct process *process, struct err *err) must_check;

/* Arms its timeout; ms from now. */
void process_start_timer(struct process *process, uint64_t ms);

/* Makes this its end, unless it has one; whether it is ours to conclude. */
bool process_claim_end(struct process *process, const struct process_end *end);

/* It has ended, says the agent or the clock; on the event loop's thread, so the database writer writes it down. */
void process_come_to_end(struct process *process, const struct process_end *how);

/* Writes the end down and reports it. Not on the event loop's thread. */
void process_conclude(struct process *process);

/* The same on the database writer's thread, soon. */
void process_conclude_later(struct process *process);

/* Reports an end that is not written down: the daemon leaves, and the next goes on with it. */
void process_abandon(struct process *process);

/* Has what is known of a kept one written down soon, so that the next daemon knows it too. */
void process_note_change(struct process *process);

/* Forgets a kept one that has ended: its row and its output. */
void process_forget_row(struct sandbox *sandbox, uint32_t number);

/* Forgets a kept one that never ran. */
void process_drop_row(struct process *process);

/* Drops it from the list, with the list's reference. */
void process_unlist(struct process *process);

/* No survivor of an ended process is left: writes that down and takes it off the list. */
void process_leave_later(struct process *process);

/* Its survivors are gone too. */
void process_lose_survivors(struct process *process);

/* Sends what the agent has room for of its standard input. The lock is held; the link's is a leaf. */
void process_push_input(struct process *process);

/* Acknowledges what was consumed when it is its turn (output_rate.h), not for every few bytes. */
void process_acknowledge(struct process *process);

/* Tells the agent how far its output was taken. */
void process_send_ack(struct process *process, uint64_t offset);
