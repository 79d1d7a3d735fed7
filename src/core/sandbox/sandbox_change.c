/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a sandbox: its record, and what follows from it for one that runs. */
#include "base/fail_point.h"
#include "base/format.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_row.h"
#include "core/engine/sandbox_state.h"
#include "core/process/start_command.h"
#include "core/sandbox/disk_count.h"
#include "core/sandbox/sandbox.h"

#include <errno.h>
#include <string.h>

/* One that does not run gets its new limits with its next start. life is held. */
static int resize(struct sandbox *sandbox, uint64_t from_bytes, uint64_t to_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = 0;

	if (sandbox_seems_up(sandbox) && from_bytes != to_bytes)
		r = driver->ops->resize(driver, sandbox->id, to_bytes,
			sandbox->growth == GROWTH_HELD ? disk_reserve_growth(sandbox->engine) : 0,
			err);
	return r == -ENOENT ? 0 : r; /* it ended by itself just now */
}

static bool are_equal(const struct resources *a, const struct resources *b)
{
	return a->cpu_millis == b->cpu_millis && a->memory_bytes == b->memory_bytes &&
	       a->pids == b->pids;
}

/* A limit below what is in use would have the kernel kill a process for it. life is held. */
static int check_memory(struct sandbox *sandbox, uint64_t to_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	char used[FORMAT_SIZE_LEN], limit[FORMAT_SIZE_LEN];
	struct driver_stats stats = {0};

	if (driver->ops->stats(driver, sandbox->id, &stats, err) < 0 ||
		stats.memory_held_bytes <= to_bytes)
		return 0;
	format_size(stats.memory_held_bytes, used);
	format_size(to_bytes, limit);
	return err_explain(err, ERR_CONFLICT, "memory_in_use",
		"end something in it first, or choose a higher limit",
		"sandbox %s uses %s of memory, which is more than %s", sandbox->id, used, limit);
}

/* The same for memory, processor and processes. life is held. */
static int set_limits(struct sandbox *sandbox, const struct resources *from,
	const struct resources *to, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = 0;

	if (!sandbox_seems_up(sandbox) || are_equal(from, to))
		return 0;
	if (to->memory_bytes < from->memory_bytes)
		r = check_memory(sandbox, to->memory_bytes, err);
	if (r == 0)
		r = driver->ops->set_limits(driver, sandbox->id, to, false, err);
	return r == -ENOENT ? 0 : r; /* it ended by itself just now */
}

/* A change of limits or network that did not come about. life is held. */
static void undo_change(
	struct sandbox *sandbox, const struct sandbox_record *before, const struct resources *from)
{
	struct err err;
	int r = resize(sandbox, from->disk_bytes, before->resources.disk_bytes, &err);

	if (r == 0)
		r = set_limits(sandbox, from, &before->resources, &err);

	if (r == 0)
		r = sandbox_row_write(sandbox, before, &err);
	if (r < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

/* Whether the driver can bring about what a record is to become. life is held. */
static int check_change(
	const struct sandbox *sandbox, const struct sandbox_record *changed, struct err *err)
{
	const struct driver *driver = sandbox->engine->config.driver;
	int r = capability_check_record(driver, changed, err);

	if (r == 0 && sandbox_seems_up(sandbox) &&
		(changed->resources.disk_bytes != sandbox->record.resources.disk_bytes ||
			!are_equal(&changed->resources, &sandbox->record.resources)))
		r = capability_need(driver, DRIVER_LIVE_RESIZE, err);
	return r;
}

/* Shells that begin from now on show the new name. Where that cannot be, they do after the next start. */
static void set_hostname(const struct sandbox *sandbox, const char *name)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err err;

	if (sandbox_seems_up(sandbox) && driver_give_name(driver, sandbox->id, name, &err) < 0)
		log_warning("sandbox %s keeps its host name: %s", sandbox->id, err.message);
}

/*
 * The row comes first: it is where a quota refuses. A daemon that dies right after it leaves limits that are still
 * the old ones until the next start. life is held.
 */
static int change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	struct sandbox_record before, changed;
	uint64_t from_bytes, to_bytes;
	bool is_other_network, is_other_start;
	int r;

	sandbox_read(sandbox, &before);
	sandbox_read(sandbox, &changed);
	apply(&changed, arg);
	from_bytes = before.resources.disk_bytes;
	to_bytes = changed.resources.disk_bytes;
	is_other_network = !json_equal(changed.network, sandbox->record.network);
	is_other_start = !json_equal(changed.start, sandbox->record.start);
	r = check_change(sandbox, &changed, err);
	if (r == 0)
		r = sandbox_row_write(sandbox, &changed, err);
	fail_point("change.row_written");
	if (r == 0) {
		r = resize(sandbox, from_bytes, to_bytes, err);
		if (r == 0)
			r = set_limits(sandbox, &before.resources, &changed.resources, err);
		fail_point("change.resized");
		/* Which of them came about is not known: all are written again. */
		if (r < 0)
			undo_change(sandbox, &before, &changed.resources);
	}
	if (r == 0 && is_other_network) {
		r = sandbox_network_change(sandbox, err);
		if (r < 0)
			undo_change(sandbox, &before, &changed.resources);
	}
	if (r == 0 && strcmp(before.name, changed.name) != 0) {
		set_hostname(sandbox, changed.name);
		sandbox_network_give(sandbox, false);
	}
	if (to_bytes != from_bytes)
		disk_count_settle(sandbox);
	if (r == 0 && is_other_start && sandbox_seems_up(sandbox))
		start_command_apply(sandbox);
	sandbox_record_fini(&before);
	sandbox_record_fini(&changed);
	return r;
}

int sandbox_change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err) : change(sandbox, apply, arg, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}
