/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of the pools, for pool*.c only. pool_list.c keeps what is in memory, pool_fill.c makes what is missing, and
 * pool.c has the rounds of the thread, which look after what waits.
 */
#pragma once

#include "core/engine/sandbox_state.h"
#include "core/pool/pool_plan.h"
#include "core/pool/pool_ready.h"

struct pool_state;

struct entry {
	struct entry *next;
	struct sandbox *sandbox;
	char stamp[STORE_POOL_STAMP_LEN + 1];
	bool is_ready;	       /* it may be given away */
	bool was_ready;	       /* it was found ready, and then */
	struct pool_mark mark; /* it fared like this */
	uint64_t since_ms;     /* it is here, or was last well */
	uint64_t asked_ms;     /* when it was last asked again whether it is ready */
};

struct pools {
	pthread_mutex_t
		planning;     /* held while plans are read: the last that are set are the newest */
	pthread_mutex_t lock; /* a leaf */
	pthread_cond_t changed;
	struct entry *entries;
	struct pool_state *states; /* of the plans, in their order */
	size_t state_count;
	unsigned draining;
	const char *held_because;
	uint64_t claimed_ms;
	uint64_t worked_ms, work_took_ms; /* one was made or removed last */
	bool is_stopping, is_due;
	bool is_to_shed; /* in the next round */
	bool sheds;	 /* in this one: all that wait go, and none is made */
};

/* What is in `rows` of a round: a row that goes has no id any more. */
struct pool_rows {
	struct pooled_record *rows;
	size_t count, cap;
};

/* --- pool_list.c; of the first two the caller holds the lock --- */

struct pool_state *pool_list_state(const struct pools *pools, const char *stamp);
struct entry **pool_list_find(struct pools *pools, const char *id);

/* Takes the reference over. mark: of one that was ready, or NULL. */
void pool_list_add(struct pools *pools, const char *stamp, struct sandbox *sandbox,
	const struct pool_mark *mark, bool is_ready);

void pool_list_drop(struct pools *pools, const char *id);
void entry_free(struct entry *entry);

/* How many of a pool there may be. */
unsigned pool_list_size(struct pools *pools, const char *stamp);

/* Waits for the next round, which begins with what was asked for until then. False when the thread is to end. */
bool pool_list_await(struct pools *pools, unsigned pause_ms);

/* --- pool_fill.c --- */

enum pool_next { POOL_NOTHING, POOL_LATER, POOL_MADE };

/* Makes one that is missing, if it is time to, and nobody needs the host for something else. */
enum pool_next pool_fill(struct engine *engine, const struct pool_rows *rows);

/* Whether what is not asked for waits, since requests go first. The lock is held. */
bool pool_must_rest(struct engine *engine, uint64_t now_ms);

/* One was made or removed, which was begun then. */
void pool_note_work(struct pools *pools, uint64_t begun_ms);

/* --- pool.c --- */

/* One could not be made, or is of no use. */
void pool_note_failure(struct engine *engine, const char *stamp, const char *why);
