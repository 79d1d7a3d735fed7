/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a process; for process.c and roll.c only. */
#pragma once

#include "core/alarm.h"
#include "core/link.h"
#include "core/process.h"
#include "core/sandbox_state.h"

#include <pthread.h>
#include <stdatomic.h>

struct process_watcher {
	atomic_int refs;
	struct process_watcher *next;
	const struct process_events *events;
	void *arg;
};

struct process {
	atomic_int refs;
	struct process *next; /* in sandbox.processes; under sandbox.state */
	struct sandbox *sandbox;
	struct link *link;
	struct output_log *log; /* NULL: not kept */
	bool is_adopted;	/* a daemon before us started it */
	uint64_t started_us;

	/* The reactor's thread only. */
	uint64_t offset; /* of the next output byte */
	bool timed_out;
	bool is_known; /* an adopted one: the agent named it in its hello */

	pthread_mutex_t
		row; /* held while the record is written down: an old one never comes last */
	pthread_mutex_t lock; /* what follows */
	struct process_record record;
	struct process_end end; /* once it is ending */
	struct process_watcher *watchers;
	struct alarm *timer;
	struct buf input; /* not sent yet */
	uint64_t input_sent, input_taken;
	bool input_ends; /* an end of file follows the byte before input_end */
	uint64_t input_end;
	unsigned pacers; /* readers that it waits for: the fastest of them */
	uint64_t consumed, acked;
	bool started, running, killed;
	bool is_parked; /* waits for the governor */
	bool ending;	/* its end is being written down */
	bool concluded; /* its end was reported */
};

/* One that has no spec: found by roll.c in the database. */
struct process *process_make(struct sandbox *sandbox, struct link *link);

/* Opens its log in the sandbox's directory. */
int process_open_log(struct process *process, struct err *err) must_check;

/* Arms its timeout; ms from now. */
int process_start_timer(struct process *process, uint64_t ms, struct err *err) must_check;

/* Makes this its end, unless it has one; whether it is ours to conclude. */
bool process_claim_end(struct process *process, const struct process_end *end);

/* Writes the end down and reports it. Not on the reactor's thread. */
void process_conclude(struct process *process);

/* The same on the scribe's thread, soon. */
void process_conclude_later(struct process *process);

/* Reports an end that is not written down: the daemon leaves, and the next goes on with it. */
void process_abandon(struct process *process);

/* Drops it from the list, with the list's reference. */
void process_unlist(struct process *process);

/* Nobody of an ended one is left: that is written down, and it goes off the list. */
void process_leave_later(struct process *process);

/* Nobody of it can be left. */
void process_lose_survivors(struct process *process);

/* Tells the agent how far its output was taken. */
void process_send_ack(struct process *process, uint64_t offset);
