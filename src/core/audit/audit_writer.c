/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audit/audit_writer.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/audit/audit_ring.h"
#include "store/access/store_audit.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define GATHER_MS     50 /* entries of so long are written together: a commit costs ten of them */
#define LOOKS_MAX     20 /* so often it looks for others after that */
#define RETRY_MS      1000
#define BATCH_MAX     256
#define BOUNDED_BURST 64
#define BOUNDED_MS    1000 /* for each, after the burst */

struct audit_writer {
	struct store *store;
	uint64_t keep;
	pthread_t thread;

	pthread_mutex_t lock;	/* what follows */
	pthread_cond_t changed; /* there is something to do */
	pthread_cond_t settled; /* something was written, or could not be */
	struct audit_ring *ring;
	int64_t written; /* the last entry in the database */
	bool is_asleep;	 /* the thread has to be woken for the next entry */
	bool is_hurried; /* somebody waits */
	bool is_failing; /* the database cannot be written */
	bool is_closing;
	uint64_t lost;		   /* entries for which there was no room */
	uint64_t bounded_until_ms; /* when the allowance for bounded entries is whole again */
	uint64_t left_out;	   /* bounded entries that were not kept */
};

/* --- the thread; the lock is held but where it says otherwise --- */

static void pause_for(struct audit_writer *writer, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!writer->is_closing && !writer->is_hurried &&
		audit_ring_count(writer->ring) < AUDIT_RING_SLOTS / 2 &&
		pthread_cond_timedwait(&writer->changed, &writer->lock, &until) == 0)
		;
}

static void note_gap(struct audit_writer *writer)
{
	struct audit_entry gap = {.at_ms = clock_wall_ms(), .action = "audit.gap"};

	snprintf(gap.detail, sizeof(gap.detail), "%llu entries could not be written",
		(unsigned long long)writer->lost);
	if (writer->lost && audit_ring_put(writer->ring, &gap))
		writer->lost = 0;
}

/* Without the lock: nobody else reads these entries, or takes their places. */
static int write_batch(struct audit_writer *writer, const struct audit_entry *const entries[],
	size_t count, struct err *err)
{
	struct err ignored;
	int r = store_audit_append(writer->store, entries, count, err);

	fail_point("audit.entries_written");
	if (r == 0 && store_audit_prune(writer->store, writer->keep, &ignored) < 0)
		log_error("old entries of the audit log stay: %s", ignored.message);
	return r;
}

static void write_some(struct audit_writer *writer)
{
	const struct audit_entry *entries[BATCH_MAX];
	size_t count = audit_ring_peek(writer->ring, entries, BATCH_MAX);
	struct err err;
	int r;

	if (count == 0)
		return;
	pthread_mutex_unlock(&writer->lock);
	r = write_batch(writer, entries, count, &err);
	pthread_mutex_lock(&writer->lock);
	if (r < 0 && !writer->is_failing)
		log_error("the audit log cannot be written: %s", err.message);
	writer->is_failing = r < 0;
	if (r == 0) {
		writer->written += (int64_t)count;
		audit_ring_drop(writer->ring, count);
		fail_point("audit.entries_dropped");
		note_gap(writer);
	}
	pthread_cond_broadcast(&writer->settled);
}

/*
 * Returns when there is one, or the writer closes; true: the thread was woken for it. While entries come it looks by itself
 * now and then: to be woken for each, it would take the processor from the request whose answer comes next.
 */
static bool await_entry(struct audit_writer *writer)
{
	unsigned looks = 0;

	while (audit_ring_count(writer->ring) == 0 && !writer->is_closing) {
		if (looks++ < LOOKS_MAX) {
			pause_for(writer, GATHER_MS);
			continue;
		}
		writer->is_asleep = true;
		pthread_cond_wait(&writer->changed, &writer->lock);
		writer->is_asleep = false;
		if (audit_ring_count(writer->ring) > 0)
			return true;
	}
	return false;
}

static void *run(void *arg)
{
	struct audit_writer *writer = arg;

	pthread_setname_np(pthread_self(), "audit-writer");
	pthread_mutex_lock(&writer->lock);
	while (!writer->is_closing) {
		if (await_entry(writer) || writer->is_failing)
			pause_for(writer, writer->is_failing ? RETRY_MS : GATHER_MS);
		writer->is_hurried = false;
		write_some(writer);
	}
	/* What cannot be written now waits in the ring for the next daemon. */
	do
		write_some(writer);
	while (audit_ring_count(writer->ring) > 0 && !writer->is_failing);
	pthread_mutex_unlock(&writer->lock);
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

static void audit_writer_free(struct audit_writer *writer)
{
	audit_ring_close(writer->ring);
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->changed);
	pthread_cond_destroy(&writer->settled);
	free(writer);
}

int audit_writer_open(struct store *store, const char *path, uint64_t keep,
	struct audit_writer **ret_auditor, struct err *err)
{
	struct audit_writer *writer = mem_new(sizeof(*writer));
	int r;

	writer->store = store;
	writer->keep = keep;
	writer->written = store_audit_head(store).sequence;
	pthread_mutex_init(&writer->lock, NULL);
	init_condition(&writer->changed);
	init_condition(&writer->settled);
	r = audit_ring_open(path, writer->written, &writer->ring, err);
	if (r == 0) {
		r = -pthread_create(&writer->thread, NULL, run, writer);
		if (r < 0)
			err_from(err, r, "start the audit writer");
	}
	if (r < 0) {
		audit_writer_free(writer);
		return r;
	}
	*ret_auditor = writer;
	return 0;
}

void audit_writer_close(struct audit_writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->is_closing = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	audit_writer_free(writer);
}

/* The lock is held. Wakes the thread for the first and when it should not wait for more. */
static void put(struct audit_writer *writer, struct audit_entry entry)
{
	size_t count;

	entry.at_ms = clock_wall_ms();
	/* Full: the writer is behind by some ten milliseconds, and is waited for, unless it fails. */
	while (!audit_ring_put(writer->ring, &entry)) {
		if (writer->is_failing) {
			writer->lost++;
			return;
		}
		pthread_cond_wait(&writer->settled, &writer->lock);
	}
	fail_point("audit.entry_kept");
	count = audit_ring_count(writer->ring);
	if ((count == 1 && writer->is_asleep) || count == AUDIT_RING_SLOTS / 2)
		pthread_cond_signal(&writer->changed);
}

void audit_writer_put(struct audit_writer *writer, const struct audit_entry *entry)
{
	pthread_mutex_lock(&writer->lock);
	put(writer, *entry);
	pthread_mutex_unlock(&writer->lock);
}

/* Whether another bounded entry is allowed now, which it then uses up. The lock is held. */
static bool allow(struct audit_writer *writer)
{
	uint64_t now = clock_steady_ms();

	if (writer->bounded_until_ms < now)
		writer->bounded_until_ms = now;
	if (writer->bounded_until_ms - now > (BOUNDED_BURST - 1) * BOUNDED_MS)
		return false;
	writer->bounded_until_ms += BOUNDED_MS;
	return true;
}

void audit_writer_put_bounded(struct audit_writer *writer, const struct audit_entry *entry)
{
	struct audit_entry told = *entry;

	pthread_mutex_lock(&writer->lock);
	if (!allow(writer)) {
		writer->left_out++;
	} else {
		if (writer->left_out)
			snprintf(told.detail, sizeof(told.detail),
				"%llu more before it were not written",
				(unsigned long long)writer->left_out);
		writer->left_out = 0;
		put(writer, told);
	}
	pthread_mutex_unlock(&writer->lock);
}

void audit_writer_flush(struct audit_writer *writer)
{
	int64_t last;

	pthread_mutex_lock(&writer->lock);
	last = audit_ring_last(writer->ring);
	while (writer->written < last && !writer->is_failing) {
		writer->is_hurried = true;
		pthread_cond_signal(&writer->changed);
		pthread_cond_wait(&writer->settled, &writer->lock);
	}
	pthread_mutex_unlock(&writer->lock);
}
