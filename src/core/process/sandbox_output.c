/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/sandbox_output.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/engine/sandbox_handle.h"

#include <errno.h>
#include <fcntl.h>

#define NOTE_BYTES (256u << 10) /* a difference that is worth a write to the database */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* No more than the sandbox could write to its disk. A member has no disk of its own. */
static uint64_t find_max(struct sandbox *sandbox)
{
	uint64_t max = sandbox->engine->config.output_sandbox_max, disk_bytes;

	pthread_mutex_lock(&sandbox->state);
	disk_bytes = sandbox->record.resources.disk_bytes;
	pthread_mutex_unlock(&sandbox->state);
	return disk_bytes ? smaller(max, disk_bytes) : max;
}

/* Borrowed; it is made by the first who asks, before anything is appended. output_lock is held. */
static int need_budget(struct sandbox *sandbox, int dir_fd, uint64_t max,
	struct output_budget **ret_budget, struct err *err)
{
	int r = 0;

	if (!sandbox->output)
		r = output_budget_open(
			dir_fd, max, sandbox->engine->config.disk_reserve, &sandbox->output, err);
	*ret_budget = sandbox->output;
	return r;
}

int sandbox_output_open(
	struct sandbox *sandbox, uint32_t process, struct output_log **ret_log, struct err *err)
{
	uint64_t max = find_max(sandbox), half = max / 2;
	struct output_budget *budget;
	auto_fd int dir_fd = -1;
	int r = sandbox_make_logs(sandbox, &dir_fd, err);

	if (r < 0)
		return r;
	if (half < OUTPUT_LOG_MIN_BYTES)
		half = OUTPUT_LOG_MIN_BYTES;
	pthread_mutex_lock(&sandbox->output_lock);
	r = need_budget(sandbox, dir_fd, max, &budget, err);
	if (r == 0) {
		output_budget_set_max(budget, max);
		r = output_log_open(dir_fd, process,
			smaller(sandbox->engine->config.output_max, half), ret_log, err);
	}
	if (r == 0)
		output_log_join(*ret_log, budget);
	pthread_mutex_unlock(&sandbox->output_lock);
	return r;
}

/* The directory of a sandbox's output, if there is one. */
static int open_existing(struct engine *engine, const char *id)
{
	return openat(engine->config.logs_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int sandbox_output_remove(struct sandbox *sandbox, uint32_t process, struct err *err)
{
	auto_fd int dir_fd = open_existing(sandbox->engine, sandbox->id);
	uint64_t max = find_max(sandbox);
	struct output_budget *budget;
	int r;

	if (dir_fd < 0 && errno != ENOENT)
		return err_sys(err, "open the output of sandbox %s", sandbox->id);
	if (dir_fd < 0)
		return 0;
	pthread_mutex_lock(&sandbox->output_lock);
	r = need_budget(sandbox, dir_fd, max, &budget, err);
	if (r == 0)
		output_budget_remove(budget, dir_fd, process);
	pthread_mutex_unlock(&sandbox->output_lock);
	return r;
}

uint64_t sandbox_output_used(struct sandbox *sandbox)
{
	struct output_budget *budget = NULL;
	auto_fd int dir_fd = open_existing(sandbox->engine, sandbox->id);
	uint64_t max = find_max(sandbox), used = 0;
	struct err err;

	if (dir_fd < 0)
		return 0;
	pthread_mutex_lock(&sandbox->output_lock);
	if (need_budget(sandbox, dir_fd, max, &budget, &err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
	else
		used = output_budget_used(budget);
	pthread_mutex_unlock(&sandbox->output_lock);
	return used;
}

void sandbox_output_note(struct sandbox *sandbox)
{
	uint64_t noted = atomic_load(&sandbox->output_noted), used = 0;
	struct err err;
	bool is_known;

	pthread_mutex_lock(&sandbox->output_lock);
	is_known = sandbox->output;
	if (is_known)
		used = output_budget_used(sandbox->output);
	pthread_mutex_unlock(&sandbox->output_lock);
	if (!is_known)
		return;
	if (noted != OUTPUT_NOT_NOTED && used < noted + NOTE_BYTES && noted < used + NOTE_BYTES)
		return;
	if (store_workspace_set_output(sandbox->engine->config.store, sandbox->id, used, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	else
		atomic_store(&sandbox->output_noted, used);
}

void sandbox_output_measure(struct engine *engine, const char *id)
{
	struct output_budget *budget = NULL;
	auto_fd int dir_fd = open_existing(engine, id);
	uint64_t used = 0;
	struct err err = {0};
	int r = 0;

	if (dir_fd >= 0)
		r = output_budget_open(dir_fd, 0, 0, &budget, &err);
	if (r == 0 && budget)
		used = output_budget_used(budget);
	if (r == 0)
		r = store_workspace_set_output(engine->config.store, id, used, &err);
	if (r < 0)
		log_warning("the output kept of %s was not measured: %s", id, err.message);
	output_budget_unref(budget);
}
