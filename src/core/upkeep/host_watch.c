/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/host_watch.h"

#include "base/log.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/host_memory.h"
#include "core/engine/sandbox_row.h"
#include "core/engine/sandbox_state.h"
#include "core/pool/pool.h"
#include "core/process/sandbox_output.h"
#include "core/sandbox/sandbox.h"
#include "model/sandbox/memory_pressure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_S	    1
#define STOPS_MAX   8	  /* sandboxes stopped for want of memory in one round */
#define IDLE_MIN_MS 10000 /* used less than this ago is not idle, however short memory is */

/* --- memory --- */

/* Whether it holds memory at all; and how much, and who uses it. One that is paused is kept on purpose: not idle. */
static bool read_user(struct sandbox *sandbox, struct memory_user *ret_user)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_stats stats = {0};
	struct err ignored;
	bool runs, is_up;

	*ret_user = (struct memory_user){0};
	pthread_mutex_lock(&sandbox->state);
	/* A member is stopped with its sandbox. */
	is_up = sandbox_seems_up(sandbox) && sandbox->link && !sandbox->ending &&
		!sandbox->record.parent[0];
	runs = sandbox->record.status == SANDBOX_RUNNING;
	ret_user->owner = sandbox->record.owner;
	pthread_mutex_unlock(&sandbox->state);
	if (!is_up || driver->ops->stats(driver, sandbox->id, &stats, &ignored) < 0)
		return false;
	ret_user->bytes = stats.memory_held_bytes;
	ret_user->idle_ms = store_clock_ms(sandbox->engine->config.store) -
			    atomic_load(&sandbox->last_active_ms);
	ret_user->is_idle =
		runs && ret_user->idle_ms > IDLE_MIN_MS && !sandbox_is_occupied(sandbox);
	return true;
}

static void stop_for_memory(struct sandbox *sandbox, const struct memory_user *user,
	const struct memory_choice *choice, uint64_t available, uint64_t reserve)
{
	char detail[sizeof(((struct termination *)NULL)->detail)];
	struct err err;

	snprintf(detail, sizeof(detail),
		"the host had %llu MiB of memory left, its reserve is %llu; this sandbox held "
		"%llu, "
		"its owner %llu of a share of %llu",
		(unsigned long long)available >> 20, (unsigned long long)reserve >> 20,
		(unsigned long long)user->bytes >> 20,
		(unsigned long long)choice->owner_bytes >> 20,
		(unsigned long long)choice->share_bytes >> 20);
	log_warning("sandbox %s of %s/%s is stopped: %s", sandbox_id(sandbox),
		user->owner.organization, user->owner.user, detail);
	if (sandbox_stop_because(sandbox, END_MEMORY_PRESSURE, detail, &err) < 0)
		log_error("sandbox %s: %s", sandbox_id(sandbox), err.message);
}

/* Stops as many as should be enough (memory_pressure.h); the next round sees whether they were. */
static void relieve_memory(struct engine *engine)
{
	uint64_t available = host_memory_available(), reserve = engine->config.memory_reserve;
	auto_free struct memory_user *users = NULL;
	struct memory_choice choice;
	struct sandbox **sandboxes;
	size_t count, user_count = 0;

	/* Those that wait for nobody yet go first. */
	if (available >= reserve || pools_shed(engine))
		return;
	sandboxes = engine_list(engine, &count);
	users = mem_new(sizeof(*users) * (count + 1));
	for (size_t i = 0; i < count; i++) {
		if (read_user(sandboxes[i], &users[user_count]))
			users[user_count++].place = i;
	}
	memory_pressure_sort(users, user_count);
	for (int i = 0; i < STOPS_MAX &&
			memory_pressure_choose(users, user_count, available, reserve, &choice);
		i++) {
		struct memory_user user = users[choice.index];

		stop_for_memory(sandboxes[user.place], &user, &choice, available, reserve);
		available += user.bytes;
		memmove(&users[choice.index], &users[choice.index + 1],
			(--user_count - choice.index) * sizeof(*users));
	}
	for (size_t i = 0; i < count; i++)
		sandbox_unref(sandboxes[i]);
	free(sandboxes);
}

/* --- the disk --- */

/* Ext4 takes no more writes on them: their owners are told. */
static void note_failed_disks(struct engine *engine)
{
	struct driver *driver = engine->config.driver;
	char ids[DRIVER_PAGE][ID_LEN + 1];
	struct err err;
	int count = driver->ops->list_failed ? driver->ops->list_failed(driver, ids, &err) : 0;

	for (int i = 0; i < count; i++) {
		auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;

		if (sandbox_get(engine, NULL, ids[i], &sandbox, &err) == 0)
			sandbox_row_note_failed_disk(sandbox);
	}
}

/* Writes down what its kept output takes, where that has changed. */
static void note_output(struct sandbox *sandbox, void *arg)
{
	(void)arg;
	sandbox_output_note(sandbox);
}

static void look_at_disk(struct engine *engine)
{
	disk_reserve_enforce(engine);
	note_failed_disks(engine);
	engine_visit(engine, note_output, NULL);
}

/* --- rounds --- */

/* False when the engine is to end. */
static bool wait_round(struct engine *engine)
{
	struct timespec deadline;
	bool goes_on;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += ROUND_S;
	pthread_mutex_lock(&engine->lock);
	while (!engine->closing && waited == 0)
		waited = pthread_cond_timedwait(&engine->work, &engine->lock, &deadline);
	goes_on = !engine->closing;
	pthread_mutex_unlock(&engine->lock);
	return goes_on;
}

void *host_watch_memory(void *engine)
{
	pthread_setname_np(pthread_self(), "memory-watch");
	while (wait_round(engine))
		relieve_memory(engine);
	return NULL;
}

void *host_watch_disk(void *engine)
{
	pthread_setname_np(pthread_self(), "disk-watch");
	while (wait_round(engine))
		look_at_disk(engine);
	return NULL;
}
