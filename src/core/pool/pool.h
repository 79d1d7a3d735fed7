/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm pools: sandboxes that were made before they were asked for, with their start commands running and their ready
 * check passed, so that imports, installs and servers that take long are over when somebody creates one.
 *
 * A waiting sandbox is an ordinary one that belongs to nobody (model/access/owner.h): no list, quota or audit entry of an
 * owner has it. The database says which are the pool's (store/sandbox/store_pool.h), and the thread of the pools makes what is
 * missing, one after the other and out of the way of requests, and removes what is of no use any more: because it
 * ended or fell ill (pool_ready.h), or its template, the settings or the daemon is another one now (pool_plan.h).
 * pool_claim.h gives them away.
 */
#pragma once

#include "core/pool/pool_plan.h"
#include "core/pool/pool_ready.h"

struct pools;

struct pools *pools_new(void);
/* Its thread has ended. NULL is fine. */
void pools_free(struct pools *pools);

/* The thread. */
void *pools_run(void *engine);
/* Has the thread end; it is the caller's to join. */
void pools_stop(struct pools *pools);

/* Lets go of all waiting sandboxes, in memory alone: the next daemon takes them up. */
void pools_let_go(struct pools *pools);

/* The host is short of memory: waiting sandboxes go before any other. Whether there are some. */
bool pools_shed(struct engine *engine);

/* What is known of a pool. */
struct pool_state {
	struct pool_plan plan;
	unsigned ready;	   /* wait for a create */
	unsigned warming;  /* are being made */
	uint64_t hits;	   /* creates that were given one, since the daemon started */
	uint64_t misses;   /* that were not, because none was ready */
	unsigned failures; /* in a row, to make one */
	uint64_t retry_ms; /* not before then, by the steady clock */
	char error[256];   /* why the last could not be made; empty: it could */
};

/* Of all of them together. */
struct pool_totals {
	unsigned draining;	  /* sandboxes that are of no use any more, and being removed */
	const char *held_because; /* nothing is made at present; NULL: it is, if need be */
};

/* Looks which pools there should be by now. The thread does so once a second; whoever lists them sees what was just changed. */
int pools_read_plans(struct engine *engine, struct err *err) must_check;

/* Copies what is known, in order of template; the caller frees the array. */
size_t pools_read(
	struct engine *engine, struct pool_state **ret_states, struct pool_totals *ret_totals);

/* --- for pool_claim.c --- */

/* Whether there are any. */
bool pools_are_there(struct pools *pools);

/*
 * Takes one that is ready and has that stamp off the list: a reference, and it is the caller's alone; NULL if there is
 * none. *ret_mark: how it fared when it was last looked at. *ret_is_pooled: there is a pool with that stamp at all.
 */
struct sandbox *pools_take(
	struct pools *pools, const char *stamp, struct pool_mark *ret_mark, bool *ret_is_pooled);

/* It was not given away, and waits on; not is_well: it is to be looked at before anybody gets it. Takes the reference
 * over. */
void pools_put_back(struct pools *pools, const char *stamp, struct sandbox *sandbox,
	const struct pool_mark *mark, bool is_well);

/* A create was given one, or none was ready. The thread makes others. */
void pools_count(struct pools *pools, const char *stamp, bool is_hit);
