/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a context, and what its files share; for core/context only. */
#pragma once

#include "core/engine/engine.h"
#include "core/execution/done_line.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "core/process/process.h"
#include "event/timer.h"
#include "model/work/context_record.h"

struct contexts {
	struct store *store;
	atomic_bool is_leaving;
	pthread_mutex_t lock; /* what follows */
	struct context *live; /* those that take executions; a reference each */
};

struct context {
	struct execution_host host; /* first: a pointer to it is one to the context */
	atomic_int refs;
	struct contexts *contexts;
	struct context *next; /* in contexts.live, under its lock */
	struct sandbox *sandbox;
	const struct language *language;
	struct timer *timer; /* of what runs, or of its idleness */

	pthread_mutex_t starting; /* held while an interpreter is started or replaced */

	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	struct context_record record;
	struct process *process; /* NULL: the next execution gets a new one */
	struct output_log *log;
	bool is_ready;		   /* the interpreter takes requests */
	bool is_live;		   /* it is in the list */
	bool is_ending;		   /* a verb ends its process, and sees to the rest */
	unsigned interrupts;	   /* sent to what runs */
	struct process_end end;	   /* of the last process, when there is none */
	struct execution *current; /* a reference, as those of the queue */
	struct execution *waiting, **last;
	unsigned waiting_count;
	uint64_t due_ms; /* when the timer has something to do, by the steady clock; 0: never */
	struct done_line line;
	uint64_t scanned; /* offset in the log up to which lines were read */
};

/* An execution whose end is known, to be settled without a lock. */
struct settled {
	struct execution *execution;
	struct process_end end;
	uint64_t log_end;
};

/* --- context.c --- */

/* Takes over the record. It takes no executions yet. */
struct context *context_make(
	struct contexts *contexts, struct sandbox *sandbox, const struct context_record *record);
void context_release(void *context); /* one reference less */

/* Has the row written soon. */
void context_write_later(struct context *context);

/* Lists it, unless the sandbox has as many as it may; and takes it off the list. */
int context_list(struct context *context, struct err *err) must_check;
void context_unlist(struct context *context);

/* That it takes nothing; the lock is held. */
int context_explain_ended(struct context *context, struct err *err);

/* --- context_run.c: what runs in it. The lock is held, unless it says otherwise --- */

/* The timer has something to do in so many ms; 0: nothing. */
void context_set_due(struct context *context, uint64_t ms);

/* Nothing runs in it. */
void context_rest(struct context *context);

/* Sends the request of the next, if nothing runs. */
void context_begin_next(struct context *context);
void context_interrupt_now(struct context *context);

/* Reads lines of results; the bytes end at an offset of the log. */
void context_scan(struct context *context, const uint8_t *data, size_t len, uint64_t end,
	struct settled *settled);

/* Without the lock: tells an execution its end. */
void context_settle(struct settled *settled);

/* All that waits, in order; references. */
struct execution *context_take_waiting(struct context *context);

/* It takes no more executions; the caller takes it off the list. */
void context_end_with(struct context *context, const char *reason);

extern const struct process_events context_process_events;
void context_on_timer(void *context);

/* Waits for a change, at most until a time of the steady clock; false if that is over. */
bool context_wait_until(struct context *context, uint64_t until_ms);

/* --- context_start.c: its interpreter. Without the lock --- */

#define CONTEXT_KILL_MS 10000 /* a killed process is gone by then */

/* Kills its process and waits until it is gone. */
void context_kill_process(struct context *context);

/* Starts an interpreter; `starting` is held. */
int context_start(struct context *context, struct err *err) must_check;

/* It takes executions from now on; and none any more. */
int context_enliven(struct context *context, struct err *err) must_check;
void context_retire(struct context *context);
