/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/stats_sampler.h"

#include "base/clock.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/sandbox_stats.h"

#include <stdio.h>
#include <time.h>

#define ROUND_S	      2
#define HISTORIES_MAX 2048 /* sandboxes that have one: 32 MiB in all */

/* A rate from two readings of a counter, which begins again when the sandbox is started again. */
static float rate(uint64_t now, uint64_t before, uint64_t elapsed_us)
{
	uint64_t grown = now >= before ? now - before : now;

	return elapsed_us ? (float)((double)grown * 1e6 / (double)elapsed_us) : 0;
}

/* What it used since the sample before; false if that was none, so that nothing can be said yet. */
static bool compare(struct sandbox_sample *last, const struct sandbox_stats *stats,
	struct stats_point *ret_point)
{
	uint64_t now_us = clock_steady_us(), elapsed_us = last->at_us ? now_us - last->at_us : 0;

	*ret_point = (struct stats_point){.at_s = (uint32_t)(clock_wall_ms() / 1000),
		.cpu = rate(stats->cpu_us, last->cpu_us, elapsed_us) / 1e6f,
		.memory = (float)stats->memory_bytes,
		.disk = (float)stats->disk_bytes,
		.rx = rate(stats->rx_bytes, last->rx_bytes, elapsed_us),
		.tx = rate(stats->tx_bytes, last->tx_bytes, elapsed_us)};
	last->at_us = now_us;
	last->cpu_us = stats->cpu_us;
	last->rx_bytes = stats->rx_bytes;
	last->tx_bytes = stats->tx_bytes;
	return elapsed_us > 0;
}

static void tell(
	struct sandbox *sandbox, const struct stats_point *point, const struct sandbox_stats *stats)
{
	char json[512], now[CLOCK_TEXT_LEN];

	clock_format(clock_wall_ms(), now);
	snprintf(json, sizeof(json),
		"{\"sandbox\":\"%s\",\"cpu\":%.3f,\"memory_bytes\":%llu,\"disk_bytes\":%llu,"
		"\"pids\":%llu,\"rx_bytes_per_second\":%.0f,\"tx_bytes_per_second\":%.0f,"
		"\"at\":\"%s\"}",
		sandbox->id, (double)point->cpu, (unsigned long long)stats->memory_bytes,
		(unsigned long long)stats->disk_bytes, (unsigned long long)stats->pids,
		(double)point->rx, (double)point->tx, now);
	sandbox_tell(sandbox, "stats.sample", json);
}

static void remember(struct sandbox *sandbox, const struct stats_point *point)
{
	pthread_mutex_lock(&sandbox->state);
	if (!sandbox->history && atomic_load(&sandbox->engine->histories) < HISTORIES_MAX) {
		atomic_fetch_add(&sandbox->engine->histories, 1);
		sandbox->history = stats_history_new();
	}
	if (sandbox->history)
		stats_history_add(sandbox->history, point);
	pthread_mutex_unlock(&sandbox->state);
}

static void sample(struct sandbox *sandbox, bool is_followed)
{
	struct sandbox_stats stats;
	struct stats_point point;
	struct err ignored;

	/* One that ends just now, or whose driver does not answer, is looked at again in the next round. */
	if (sandbox_stats_sample(sandbox, &stats, &ignored) < 0 ||
		!compare(&sandbox->sample, &stats, &point))
		return;
	remember(sandbox, &point);
	if (is_followed)
		tell(sandbox, &point, &stats);
}

static void look_at(struct sandbox *sandbox, bool is_due)
{
	struct owner owner;
	bool is_up, is_followed;

	pthread_mutex_lock(&sandbox->state);
	is_up = sandbox_seems_up(sandbox) && sandbox->link && !sandbox->ending;
	owner = sandbox->record.owner;
	pthread_mutex_unlock(&sandbox->state);
	if (!is_up)
		return;
	is_followed = event_bus_is_followed(sandbox->engine->config.bus, &owner, "stats");
	if (is_due || is_followed)
		sample(sandbox, is_followed);
}

static void look_at_all(struct engine *engine, bool is_due)
{
	struct sandbox **sandboxes;
	size_t count;

	if (!is_due && !event_bus_is_followed(engine->config.bus, NULL, "stats"))
		return;
	sandboxes = engine_list(engine, &count);
	for (size_t i = 0; i < count; i++) {
		look_at(sandboxes[i], is_due);
		sandbox_unref(sandboxes[i]);
	}
	free(sandboxes);
}

/* False when the engine is to end. */
static bool wait_round(struct engine *engine, struct timespec *deadline)
{
	bool goes_on;
	int waited = 0;

	deadline->tv_sec += ROUND_S;
	pthread_mutex_lock(&engine->lock);
	while (!engine->closing && waited == 0)
		waited = pthread_cond_timedwait(&engine->work, &engine->lock, deadline);
	goes_on = !engine->closing;
	pthread_mutex_unlock(&engine->lock);
	return goes_on;
}

void *stats_sampler_run(void *engine)
{
	struct timespec deadline;

	pthread_setname_np(pthread_self(), "stats-sampler");
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	for (unsigned round = 0; wait_round(engine, &deadline); round++) {
		look_at_all(engine, round % (STATS_FINE_S / ROUND_S) == 0);
		/* A slow round is not made up for by quick ones. */
		clock_gettime(CLOCK_MONOTONIC, &deadline);
	}
	return NULL;
}
