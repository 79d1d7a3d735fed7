/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of an execution, and what core/context does with it; for these two directories only. */
#pragma once

#include "base/log.h"
#include "core/execution/done_line.h"
#include "core/execution/execution_spec.h"
#include "core/execution/language.h"
#include "core/execution/outcome.h"

#include <pthread.h>
#include <stdatomic.h>

struct execution_watcher;

struct execution {
	atomic_int refs;
	struct executions *executions;
	struct execution *next;	      /* in executions.running, under its lock */
	struct sandbox *sandbox;      /* NULL: not yet */
	struct function_place *place; /* until it is over */
	struct process *process; /* NULL: nothing of it runs any more, or it is the context's */
	const struct language *language;
	struct log_subject subject; /* of who asked for it */
	int64_t started_wall_ms;
	struct outcome_times times; /* the thread that knows of each writes it */

	/* Of one in a context, whose lock guards them until its end is settled. */
	struct execution_host *host; /* counted; NULL: it has a process of its own */
	struct execution *after;     /* the next in the queue */
	struct buf request;	     /* what the interpreter is sent */
	enum outcome_state state;
	const char *failure; /* why nothing is known of its end; else NULL */
	bool has_waited;     /* for its turn */
	bool has_timed_out;
	bool is_told;	  /* its client hears of it before it is over, so it has its row by then */
	bool is_warm;	  /* its interpreter had waited for it */
	bool has_outputs; /* it may have written artifacts */

	/* Of one with a passing sandbox, on the thread that reads its process. */
	struct done_line line;
	bool said_done; /* its runner did: that is its end, whatever becomes of the process */

	atomic_bool is_written; /* it has a row; set under executions.rows */
	atomic_bool is_row_old; /* which does not know yet that it is over */

	pthread_mutex_t lock; /* what follows */
	struct execution_record record;
	struct output_log *log; /* NULL until it has begun */
	struct process_end end;
	bool is_queued; /* it is known, and was never begun */
	bool is_listed; /* it is among those that run, */
	bool is_ending; /* one end of it was taken; */
	bool has_ended; /* it is over: with both, its outcome is gathered */
	bool is_over;
	unsigned readers; /* of its log */
	uint64_t log_end;
	struct execution_watcher *watchers;
};

/* --- for core/execution --- */

/* What came of an owner since rows were last removed. */
struct execution_growth {
	uint64_t key; /* owner_key() */
	uint64_t count, bytes;
};

struct executions {
	struct executions_config config;
	struct function_places *places;
	struct engine *engine; /* NULL before it is there */
	pthread_mutex_t rows;  /* held while one is written, before the next */
	pthread_mutex_t lock;  /* what follows */
	pthread_cond_t changed;
	struct execution *running; /* a reference each */
	unsigned threads;	   /* that gather outcomes */
	struct timer *row_timer;   /* NULL until it is needed */
	struct timer
		*old_timer; /* for what is kept for too long; NULL before the engine is there */
	struct execution_growth growths[256];
	bool is_row_due;
	bool is_leaving;
};

/* One that has not begun; takes the record over. Without a sandbox: it gets one when it begins. */
struct execution *execution_make(struct executions *executions, struct sandbox *sandbox,
	const struct execution_record *record);

/* Puts it among those that run, with a reference; takes it out of them. */
void execution_list(struct execution *execution);
void execution_unlist(struct execution *execution);

/* Writes its row, as it is now. The second says in the log that it could not. */
int execution_write(struct execution *execution, struct err *err) must_check;
void execution_write_or_log(struct execution *execution);

/* Whether its row says what is so now. */
bool execution_is_written(const struct execution *execution);

/* Has its row written in a while, if it runs then. */
void execution_write_soon(struct execution *execution);

/* Writes the rows of all that are not written. */
void executions_write_running(struct executions *executions);

/* One more is kept: forgets what is beyond the bounds of its owner, now and then. */
void execution_history_note(struct executions *executions, const struct execution_record *record);

/* From now on what is kept for too long is forgotten, also of who runs nothing more. */
void execution_history_open(struct executions *executions, struct engine *engine);

/* It is among those that run, or it is over (the flag that is set): with both its outcome is gathered. */
void execution_note(struct execution *execution, bool *flag);

/* Describes what is to be run, without where. */
void execution_describe(struct executions *executions, const struct execution_spec *spec,
	struct execution_record *record);

/* Notes and tells the outcome, which it takes over; then does what is left to do with the rows. */
void execution_tell_outcome(
	struct execution *execution, enum execution_status status, json_t *outcome);
void execution_conclude(struct execution *execution);

/* The watch of its process, which has a reference of it. */
extern const struct process_events execution_process_events;

/* Tells watchers that it is over. Without a lock: they look at the record and answer clients. Nobody can watch after. */
void execution_tell_over(struct execution *execution, const struct execution_record *record);

/* --- for core/context --- */

/* It begins: from here on the log is its own. Tells watchers. */
void execution_note_begun(struct execution *execution, uint32_t process, struct output_log *log);

/* Writes soon where it begins, for the next daemon. */
void execution_write_begun(struct execution *execution);

/* Its log has more. */
void execution_tell_output(struct execution *execution);

/* It has come to an end, the first of which counts, with what the context knows. Its log ends there, if its runner said so.
 * The outcome is gathered on another thread. */
void execution_come_to_end(
	struct execution *execution, const struct process_end *end, uint64_t log_end);
