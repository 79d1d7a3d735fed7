/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_stats.h"

#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/process/sandbox_output.h"
#include "core/sandbox/member.h"

#include <errno.h>
#include <string.h>

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

int sandbox_stats_read(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct sandbox_egress_counters network;
	struct driver_stats stats = {0};
	struct driver_usage usage = {0};
	char disk_id[ID_LEN + 1];
	struct resources limits;
	enum sandbox_status status;
	int r;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->record.status;
	limits = sandbox->record.resources;
	pthread_mutex_unlock(&sandbox->state);
	r = read_running(sandbox, status, &stats, err);
	read_disk_owner(sandbox, disk_id, &limits);
	if (r == 0)
		r = driver->ops->usage(driver, disk_id, &usage, err);
	if (r < 0)
		return r;
	sandbox_network_count(sandbox, &network);
	*ret_stats = (struct sandbox_stats){.limits = limits,
		.cpu_us = stats.cpu_us,
		.memory_bytes = stats.memory_bytes,
		.memory_peak_bytes = stats.memory_peak_bytes,
		.pids = stats.pids,
		.disk_bytes = usage.bytes,
		.disk_files = usage.files,
		.disk_files_limit = usage.files_limit,
		.output_bytes = sandbox_output_used(sandbox),
		.rx_bytes = network.rx_bytes,
		.tx_bytes = network.tx_bytes};
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
