/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_stats.h"

#include "base/clock.h"
#include "core/engine/member_state.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/process/sandbox_output.h"
#include "core/sandbox/member.h"

#include <errno.h>
#include <string.h>

#define DISK_KNOWN_US (STATS_COARSE_S * 1000000ull) /* at most, until it is asked for again */

/* One that does not run uses nothing but disk; that it stopped just now is no error either. */
static int read_running(struct sandbox *sandbox, enum sandbox_status status,
	struct driver_stats *stats, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r;

	if (status != SANDBOX_RUNNING && status != SANDBOX_PAUSED)
		return 0;
	r = driver->ops->stats(driver, sandbox->id, stats, err);
	return r == -ENOENT ? 0 : r;
}

/* All members write to the disk of their sandbox. */
static void read_disk_owner(
	struct sandbox *sandbox, char ret_id[ID_LEN + 1], struct resources *limits)
{
	auto_(sandbox_unrefp) struct sandbox *owner = member_primary(sandbox);

	if (owner) {
		pthread_mutex_lock(&owner->state);
		limits->disk_bytes = owner->record.resources.disk_bytes;
		pthread_mutex_unlock(&owner->state);
	}
	memcpy(ret_id, owner ? owner->id : sandbox->id, ID_LEN + 1);
}

/* All but what is on its disk. */
static int read_own(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
{
	struct sandbox_egress_counters network;
	struct driver_stats stats = {0};
	struct resources limits;
	enum sandbox_status status;
	int r;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->record.status;
	limits = sandbox->record.resources;
	pthread_mutex_unlock(&sandbox->state);
	r = read_running(sandbox, status, &stats, err);
	if (r < 0)
		return r;
	sandbox_network_count(sandbox, &network);
	*ret_stats = (struct sandbox_stats){.limits = limits,
		.cpu_us = stats.cpu_us,
		.memory_bytes = stats.memory_bytes,
		.memory_peak_bytes = stats.memory_peak_bytes,
		.pids = stats.pids,
		.output_bytes = sandbox_output_used(sandbox),
		.rx_bytes = network.rx_bytes,
		.tx_bytes = network.tx_bytes};
	return 0;
}

static int read_disk(struct sandbox *sandbox, struct sandbox_stats *stats, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_usage usage = {0};
	char disk_id[ID_LEN + 1];
	int r;

	read_disk_owner(sandbox, disk_id, &stats->limits);
	r = driver->ops->usage(driver, disk_id, &usage, err);
	if (r < 0)
		return r;
	stats->disk_bytes = usage.bytes;
	stats->disk_files = usage.files;
	stats->disk_files_limit = usage.files_limit;
	return 0;
}

int sandbox_stats_read(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
{
	struct sandbox_stats stats;
	int r = read_own(sandbox, &stats, err);

	if (r == 0)
		r = read_disk(sandbox, &stats, err);
	if (r == 0)
		*ret_stats = stats;
	return r;
}

/* A driver that cannot tell processor time says 0. */
static bool is_disk_known(const struct sandbox *sandbox, uint64_t cpu_us)
{
	const struct sandbox_sample *last = &sandbox->sample;

	return !member_state_is_one(sandbox) && last->disk_us > 0 && cpu_us > 0 &&
	       cpu_us == last->cpu_us && clock_steady_us() - last->disk_us < DISK_KNOWN_US;
}

static void note_disk(struct sandbox *sandbox, uint64_t bytes)
{
	auto_(sandbox_unrefp) struct sandbox *owner = member_primary(sandbox);

	if (!owner)
		return;
	owner->sample.disk_bytes = bytes;
	owner->sample.disk_us = clock_steady_us();
}

int sandbox_stats_sample(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
{
	struct sandbox_stats stats;
	int r = read_own(sandbox, &stats, err);

	if (r < 0)
		return r;
	if (is_disk_known(sandbox, stats.cpu_us)) {
		stats.disk_bytes = sandbox->sample.disk_bytes;
	} else {
		r = read_disk(sandbox, &stats, err);
		if (r < 0)
			return r;
		note_disk(sandbox, stats.disk_bytes);
	}
	*ret_stats = stats;
	return 0;
}

size_t sandbox_stats_history(struct sandbox *sandbox, bool is_coarse, uint32_t since_s,
	struct stats_point *points, size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->history)
		count = stats_history_read(sandbox->history, is_coarse, since_s, points, max);
	pthread_mutex_unlock(&sandbox->state);
	return count;
}
