/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_private.h"

#include "base/clock.h"
#include "core/pool/pool.h"

#include <string.h>
#include <time.h>

struct pools *pools_new(void)
{
	struct pools *pools = mem_new(sizeof(*pools));
	pthread_condattr_t attr;

	pthread_mutex_init(&pools->planning, NULL);
	pthread_mutex_init(&pools->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pools->changed, &attr);
	pthread_condattr_destroy(&attr);
	return pools;
}

void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	sandbox_unref(entry->sandbox);
	free(entry);
}

void pools_let_go(struct pools *pools)
{
	struct entry *entry;

	do {
		pthread_mutex_lock(&pools->lock);
		entry = pools->entries;
		if (entry)
			pools->entries = entry->next;
		pthread_mutex_unlock(&pools->lock);
		entry_free(entry);
	} while (entry);
}

void pools_free(struct pools *pools)
{
	if (!pools)
		return;
	pools_let_go(pools);
	free(pools->states);
	pthread_mutex_destroy(&pools->planning);
	pthread_mutex_destroy(&pools->lock);
	pthread_cond_destroy(&pools->changed);
	free(pools);
}

void pools_stop(struct pools *pools)
{
	pthread_mutex_lock(&pools->lock);
	pools->is_stopping = true;
	pthread_cond_broadcast(&pools->changed);
	pthread_mutex_unlock(&pools->lock);
}

/* --- what is in memory --- */

struct pool_state *pool_list_state(const struct pools *pools, const char *stamp)
{
	for (size_t i = 0; i < pools->state_count; i++) {
		if (strcmp(pools->states[i].plan.stamp, stamp) == 0)
			return &pools->states[i];
	}
	return NULL;
}

struct entry **pool_list_find(struct pools *pools, const char *id)
{
	for (struct entry **at = &pools->entries; *at; at = &(*at)->next) {
		if (strcmp((*at)->sandbox->id, id) == 0)
			return at;
	}
	return NULL;
}

void pool_list_add(struct pools *pools, const char *stamp, struct sandbox *sandbox,
	const struct pool_mark *mark, bool is_ready)
{
	struct entry *entry = mem_new(sizeof(*entry));

	entry->sandbox = sandbox;
	entry->is_ready = is_ready;
	entry->was_ready = mark;
	if (mark)
		entry->mark = *mark;
	entry->since_ms = entry->asked_ms = clock_steady_ms();
	memcpy(entry->stamp, stamp, sizeof(entry->stamp));
	pthread_mutex_lock(&pools->lock);
	entry->next = pools->entries;
	pools->entries = entry;
	pthread_mutex_unlock(&pools->lock);
}

void pool_list_drop(struct pools *pools, const char *id)
{
	struct entry **at, *entry = NULL;

	pthread_mutex_lock(&pools->lock);
	at = pool_list_find(pools, id);
	if (at) {
		entry = *at;
		*at = entry->next;
	}
	pthread_mutex_unlock(&pools->lock);
	entry_free(entry);
}

bool pools_are_there(struct pools *pools)
{
	bool are;

	pthread_mutex_lock(&pools->lock);
	are = pools->state_count > 0;
	pthread_mutex_unlock(&pools->lock);
	return are;
}

struct sandbox *pools_take(
	struct pools *pools, const char *stamp, struct pool_mark *ret_mark, bool *ret_is_pooled)
{
	struct sandbox *sandbox = NULL;

	pthread_mutex_lock(&pools->lock);
	*ret_is_pooled = pool_list_state(pools, stamp);
	for (struct entry **at = &pools->entries; *ret_is_pooled && *at; at = &(*at)->next) {
		struct entry *entry = *at;

		if (entry->is_ready && strcmp(entry->stamp, stamp) == 0) {
			*at = entry->next;
			*ret_mark = entry->mark;
			sandbox = take_ptr(&entry->sandbox);
			free(entry);
			break;
		}
	}
	pthread_mutex_unlock(&pools->lock);
	return sandbox;
}

/* The thread of the pools may have missed it meanwhile and put it on the list by itself. */
void pools_put_back(struct pools *pools, const char *stamp, struct sandbox *sandbox,
	const struct pool_mark *mark, bool is_well)
{
	pool_list_drop(pools, sandbox->id);
	pool_list_add(pools, stamp, sandbox, mark, is_well);
	if (is_well)
		return;
	pthread_mutex_lock(&pools->lock);
	pools->is_due = true;
	pthread_cond_broadcast(&pools->changed);
	pthread_mutex_unlock(&pools->lock);
}

void pools_count(struct pools *pools, const char *stamp, bool is_hit)
{
	struct pool_state *state;

	pthread_mutex_lock(&pools->lock);
	state = pool_list_state(pools, stamp);
	if (state && is_hit)
		state->hits++;
	else if (state)
		state->misses++;
	pools->claimed_ms = clock_steady_ms();
	pthread_mutex_unlock(&pools->lock);
}

bool pools_shed(struct engine *engine)
{
	struct pools *pools = engine->pools;
	bool has_some;

	pthread_mutex_lock(&pools->lock);
	has_some = pools->entries;
	if (has_some) {
		pools->is_to_shed = pools->is_due = true;
		pthread_cond_broadcast(&pools->changed);
	}
	pthread_mutex_unlock(&pools->lock);
	return has_some;
}

size_t pools_read(
	struct engine *engine, struct pool_state **ret_states, struct pool_totals *ret_totals)
{
	struct pools *pools = engine->pools;
	struct pool_state *states;
	size_t count;

	pthread_mutex_lock(&pools->lock);
	count = pools->state_count;
	states = mem_new((count + 1) * sizeof(*states));
	for (size_t i = 0; i < count; i++) {
		states[i] = pools->states[i];
		states[i].ready = states[i].warming = 0;
		for (struct entry *e = pools->entries; e; e = e->next) {
			bool is_of = strcmp(e->stamp, states[i].plan.stamp) == 0;

			states[i].ready += is_of && e->is_ready;
			states[i].warming += is_of && !e->is_ready;
		}
	}
	*ret_totals = (struct pool_totals){pools->draining, pools->held_because};
	pthread_mutex_unlock(&pools->lock);
	*ret_states = states;
	return count;
}

unsigned pool_list_size(struct pools *pools, const char *stamp)
{
	const struct pool_state *state;
	unsigned size;

	pthread_mutex_lock(&pools->lock);
	state = pool_list_state(pools, stamp);
	size = state && !pools->sheds ? state->plan.size : 0;
	pthread_mutex_unlock(&pools->lock);
	return size;
}

bool pool_list_await(struct pools *pools, unsigned pause_ms)
{
	uint64_t due_ms = clock_steady_ms() + pause_ms;
	struct timespec deadline = {
		.tv_sec = (time_t)(due_ms / 1000), .tv_nsec = (long)(due_ms % 1000) * 1000000};
	bool goes_on;
	int waited = 0;

	pthread_mutex_lock(&pools->lock);
	while (!pools->is_stopping && !pools->is_due && waited == 0)
		waited = pthread_cond_timedwait(&pools->changed, &pools->lock, &deadline);
	pools->is_due = false;
	/* What comes from now on is for the round after it. */
	pools->sheds = pools->is_to_shed;
	pools->is_to_shed = false;
	goes_on = !pools->is_stopping;
	pthread_mutex_unlock(&pools->lock);
	return goes_on;
}
