/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaper: one thread that looks after sandboxes nobody is looking after. It settles those whose
 * agent vanished, at once; and every second it stops those idle for longer than they may be, and
 * deletes those that outlived their time.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/roll.h"
#include "core/sandbox_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_S	  1
#define ROUND_MAX 64 /* sandboxes dealt with in one round */

static void settle_lost(struct engine *engine)
{
	for (;;) {
		struct sandbox *sandbox = NULL;

		pthread_mutex_lock(&engine->lock);
		if (engine->lost_count > 0)
			sandbox = engine->lost[--engine->lost_count];
		pthread_mutex_unlock(&engine->lock);
		if (!sandbox)
			return;
		sandbox_settle(sandbox);
		sandbox_unref(sandbox);
	}
}

/* The row of one that is used all the time says otherwise, because a use is not written each time:
 * then it is written now, and the row is no longer due. */
static void look_after(struct engine *engine, const char *id)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	int64_t now = clock_wall_ms();
	struct err err;
	int r = sandbox_get(engine, NULL, id, &sandbox, &err);

	if (r < 0)
		return;
	sandbox_read(sandbox, &record);
	if (record.expires_at_ms && now >= record.expires_at_ms) {
		log_info("sandbox %s reached the end of its lifetime", id);
		r = sandbox_delete(sandbox, END_LIFETIME, &err);
	} else if (sandbox_is_occupied(sandbox)) {
		r = store_sandbox_touch(engine->config.store, id, now, &err);
	} else if (now - record.last_active_at_ms < record.idle_timeout_s * 1000) {
		r = store_sandbox_touch(engine->config.store, id, record.last_active_at_ms, &err);
	} else {
		log_info("sandbox %s was idle for %lld s", id, (long long)record.idle_timeout_s);
		r = sandbox_stop(sandbox, END_IDLE, &err);
	}
	sandbox_record_fini(&record);
	if (r < 0 && r != -ENOENT)
		log_error("sandbox %s: %s", id, err.message);
}

/* What the kernel believes can be had without swapping; UINT64_MAX if it does not say. */
static uint64_t available_memory(void)
{
	char text[2048], *line;

	if (fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) <= 0)
		return UINT64_MAX;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}

/* The host runs out of memory: the sandbox that was left alone longest is stopped, one in a round. */
static void relieve_memory(struct engine *engine)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err err;

	if (available_memory() >= engine->config.memory_reserve)
		return;
	sandbox = engine_find_idlest(engine);
	if (!sandbox)
		return;
	log_warning("little memory is left: sandbox %s, which nobody uses, is stopped",
		sandbox_id(sandbox));
	if (sandbox_stop(sandbox, END_MEMORY_PRESSURE, &err) < 0)
		log_error("sandbox %s: %s", sandbox_id(sandbox), err.message);
}

static bool is_closing(struct engine *engine)
{
	bool closing;

	pthread_mutex_lock(&engine->lock);
	closing = engine->closing;
	pthread_mutex_unlock(&engine->lock);
	return closing;
}

static void make_round(struct engine *engine)
{
	char ids[ROUND_MAX][ID_LEN + 1];
	struct err err;
	int count = store_sandbox_due(engine->config.store, clock_wall_ms(), ids, ROUND_MAX, &err);

	if (count < 0)
		log_error("reaper: %s", err.message);
	for (int i = 0; i < count && !is_closing(engine); i++)
		look_after(engine, ids[i]);
	relieve_memory(engine);
}

void *reaper_run(void *arg)
{
	struct engine *engine = arg;

	pthread_setname_np(pthread_self(), "reaper");
	while (!is_closing(engine)) {
		struct timespec deadline;
		int waited = 0;

		clock_gettime(CLOCK_MONOTONIC, &deadline);
		deadline.tv_sec += ROUND_S;
		pthread_mutex_lock(&engine->lock);
		while (!engine->closing && engine->lost_count == 0 && waited == 0)
			waited = pthread_cond_timedwait(&engine->work, &engine->lock, &deadline);
		pthread_mutex_unlock(&engine->lock);
		settle_lost(engine);
		if (waited == ETIMEDOUT)
			make_round(engine);
	}
	return NULL;
}
