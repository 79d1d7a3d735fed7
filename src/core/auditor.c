/* SPDX-License-Identifier: Apache-2.0 */
#include "core/auditor.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/audit_ring.h"
#include "store/store_audit.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define GATHER_MS     50 /* entries of so long are written together: a commit costs ten of them */
#define RETRY_MS      1000
#define BATCH_MAX     256
#define BOUNDED_BURST 64
#define BOUNDED_MS    1000 /* for each, after the burst */

struct auditor {
	struct store *store;
	uint64_t keep;
	pthread_t thread;

	pthread_mutex_t lock;	/* what follows */
	pthread_cond_t changed; /* there is something to do */
	pthread_cond_t settled; /* something was written, or could not be */
	struct audit_ring *ring;
	int64_t written; /* the last entry in the database */
	bool is_hurried; /* somebody waits */
	bool is_failing; /* the database cannot be written */
	bool is_closing;
	uint64_t lost;		   /* entries for which there was no room */
	uint64_t bounded_until_ms; /* when the allowance for bounded entries is whole again */
	uint64_t left_out;	   /* bounded entries that were not kept */
};

/* --- the thread; the lock is held but where it says otherwise --- */

static void pause_for(struct auditor *auditor, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!auditor->is_closing && !auditor->is_hurried &&
		audit_ring_count(auditor->ring) < AUDIT_RING_SLOTS / 2 &&
		pthread_cond_timedwait(&auditor->changed, &auditor->lock, &until) == 0)
		;
}

static void note_gap(struct auditor *auditor)
{
	struct audit_entry gap = {.at_ms = clock_wall_ms(), .action = "audit.gap"};

	snprintf(gap.detail, sizeof(gap.detail), "%llu entries could not be written",
		(unsigned long long)auditor->lost);
	if (auditor->lost && audit_ring_put(auditor->ring, &gap))
		auditor->lost = 0;
}

/* Without the lock: nobody else reads these entries, or takes their places. */
static int write_batch(struct auditor *auditor, const struct audit_entry *const entries[],
	size_t count, struct err *err)
{
	struct err ignored;
	int r = store_audit_append(auditor->store, entries, count, err);

	if (r == 0 && store_audit_prune(auditor->store, auditor->keep, &ignored) < 0)
		log_error("old entries of the audit log stay: %s", ignored.message);
	return r;
}

static void write_some(struct auditor *auditor)
{
	const struct audit_entry *entries[BATCH_MAX];
	size_t count = audit_ring_peek(auditor->ring, entries, BATCH_MAX);
	struct err err;
	int r;

	if (count == 0)
		return;
	pthread_mutex_unlock(&auditor->lock);
	r = write_batch(auditor, entries, count, &err);
	pthread_mutex_lock(&auditor->lock);
	if (r < 0 && !auditor->is_failing)
		log_error("the audit log cannot be written: %s", err.message);
	auditor->is_failing = r < 0;
	if (r == 0) {
		auditor->written += (int64_t)count;
		audit_ring_drop(auditor->ring, count);
		note_gap(auditor);
	}
	pthread_cond_broadcast(&auditor->settled);
}

static void *run(void *arg)
{
	struct auditor *auditor = arg;

	pthread_setname_np(pthread_self(), "auditor");
	pthread_mutex_lock(&auditor->lock);
	while (!auditor->is_closing) {
		while (audit_ring_count(auditor->ring) == 0 && !auditor->is_closing)
			pthread_cond_wait(&auditor->changed, &auditor->lock);
		pause_for(auditor, auditor->is_failing ? RETRY_MS : GATHER_MS);
		auditor->is_hurried = false;
		write_some(auditor);
	}
	/* What cannot be written now waits in the ring for the next daemon. */
	do
		write_some(auditor);
	while (audit_ring_count(auditor->ring) > 0 && !auditor->is_failing);
	pthread_mutex_unlock(&auditor->lock);
	return NULL;
}

/* --- for everybody --- */

static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attr);
	pthread_condattr_destroy(&attr);
}

static void auditor_free(struct auditor *auditor)
{
	audit_ring_close(auditor->ring);
	pthread_mutex_destroy(&auditor->lock);
	pthread_cond_destroy(&auditor->changed);
	pthread_cond_destroy(&auditor->settled);
	free(auditor);
}

int auditor_open(struct store *store, const char *path, uint64_t keep, struct auditor **ret_auditor,
	struct err *err)
{
	struct auditor *auditor = mem_new(sizeof(*auditor));
	int r;

	auditor->store = store;
	auditor->keep = keep;
	auditor->written = store_audit_head(store).sequence;
	pthread_mutex_init(&auditor->lock, NULL);
	init_condition(&auditor->changed);
	init_condition(&auditor->settled);
	r = audit_ring_open(path, auditor->written, &auditor->ring, err);
	if (r == 0) {
		r = -pthread_create(&auditor->thread, NULL, run, auditor);
		if (r < 0)
			err_from(err, r, "start the auditor");
	}
	if (r < 0) {
		auditor_free(auditor);
		return r;
	}
	*ret_auditor = auditor;
	return 0;
}

void auditor_close(struct auditor *auditor)
{
	if (!auditor)
		return;
	pthread_mutex_lock(&auditor->lock);
	auditor->is_closing = true;
	pthread_cond_signal(&auditor->changed);
	pthread_mutex_unlock(&auditor->lock);
	pthread_join(auditor->thread, NULL);
	auditor_free(auditor);
}

/* The lock is held. Wakes the thread for the first and when it should not wait for more. */
static void put(struct auditor *auditor, struct audit_entry entry)
{
	size_t count;

	entry.at_ms = clock_wall_ms();
	/* Full: the writer is behind by some ten milliseconds, and is waited for, unless it fails. */
	while (!audit_ring_put(auditor->ring, &entry)) {
		if (auditor->is_failing) {
			auditor->lost++;
			return;
		}
		pthread_cond_wait(&auditor->settled, &auditor->lock);
	}
	count = audit_ring_count(auditor->ring);
	if (count == 1 || count == AUDIT_RING_SLOTS / 2)
		pthread_cond_signal(&auditor->changed);
}

void auditor_put(struct auditor *auditor, const struct audit_entry *entry)
{
	pthread_mutex_lock(&auditor->lock);
	put(auditor, *entry);
	pthread_mutex_unlock(&auditor->lock);
}

/* Whether another bounded entry is allowed now, which it then uses up. The lock is held. */
static bool allow(struct auditor *auditor)
{
	uint64_t now = clock_steady_ms();

	if (auditor->bounded_until_ms < now)
		auditor->bounded_until_ms = now;
	if (auditor->bounded_until_ms - now > (BOUNDED_BURST - 1) * BOUNDED_MS)
		return false;
	auditor->bounded_until_ms += BOUNDED_MS;
	return true;
}

void auditor_put_bounded(struct auditor *auditor, const struct audit_entry *entry)
{
	struct audit_entry told = *entry;

	pthread_mutex_lock(&auditor->lock);
	if (!allow(auditor)) {
		auditor->left_out++;
	} else {
		if (auditor->left_out)
			snprintf(told.detail, sizeof(told.detail),
				"%llu more before it were not written",
				(unsigned long long)auditor->left_out);
		auditor->left_out = 0;
		put(auditor, told);
	}
	pthread_mutex_unlock(&auditor->lock);
}

void auditor_flush(struct auditor *auditor)
{
	int64_t last;

	pthread_mutex_lock(&auditor->lock);
	last = audit_ring_last(auditor->ring);
	while (auditor->written < last && !auditor->is_failing) {
		auditor->is_hurried = true;
		pthread_cond_signal(&auditor->changed);
		pthread_cond_wait(&auditor->settled, &auditor->lock);
	}
	pthread_mutex_unlock(&auditor->lock);
}
