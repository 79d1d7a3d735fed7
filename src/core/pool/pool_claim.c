/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row comes first, with the owner in it: from then on the sandbox is somebody's, whatever happens to the daemon.
 * What is set after that concerns the sandbox that runs; a daemon that takes it up reads it from the row.
 */
#include "core/pool/pool_claim.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/process/environment.h"
#include "core/process/process_table.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/project/projects.h"
#include "core/sandbox/sandbox.h"
#include "model/owner.h"

#include <string.h>

#define UNUSABLE 1 /* it is not the pool's any more, or does not run */
#define UNFIT	 2 /* it cannot become what is asked for, but what another asks for */

/* Whether a sandbox that was made of its template alone can become this. */
static bool is_ordinary(const struct sandbox_record *draft)
{
	return (!draft->id[0] || draft->reserved_by) && !draft->snapshot[0] && !draft->job[0] &&
	       !owner_is_pool(&draft->owner) && json_object_size(draft->dependencies) == 0;
}

/* life is held, here and below. */
static int check_fit(struct sandbox *sandbox, const struct sandbox_record *draft, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	const struct resources *has = &sandbox->record.resources, *wants = &draft->resources;
	struct driver_stats stats = {0};

	if (wants->disk_bytes != has->disk_bytes)
		return UNFIT;
	if (memcmp(wants, has, sizeof(*has)) != 0 && !driver_can(driver, DRIVER_LIVE_RESIZE))
		return UNFIT;
	if (wants->memory_bytes < has->memory_bytes &&
		(driver->ops->stats(driver, sandbox->id, &stats, err) < 0 ||
			stats.memory_held_bytes > wants->memory_bytes))
		return UNFIT;
	return 0;
}

static bool is_usable(const struct sandbox *sandbox)
{
	return !sandbox->gone && sandbox->record.status == SANDBOX_RUNNING && sandbox->link &&
	       !sandbox->ending;
}

/* The record that it is to have; the JSON is borrowed of the draft, and the image of the sandbox. */
static struct sandbox_record record_for(struct sandbox *sandbox, const struct sandbox_record *draft)
{
	struct sandbox_record record = *draft;

	memcpy(record.id, sandbox->id, sizeof(record.id));
	record.status = SANDBOX_RUNNING;
	record.image = sandbox->record.image;
	record.created_at_ms = record.last_active_at_ms =
		store_clock_ms(sandbox->engine->config.store);
	record.started_at_ms = sandbox->record.started_at_ms;
	if (record.lifetime_s != SANDBOX_NO_LIMIT)
		record.expires_at_ms = record.created_at_ms + record.lifetime_s * 1000;
	record.reserved_by = NULL;
	return record;
}

static void keep_record(struct sandbox *sandbox, const struct sandbox_record *record)
{
	struct sandbox_record copy, old;

	sandbox_record_copy(&copy, record);
	atomic_store(&sandbox->last_active_ms, record->last_active_at_ms);
	pthread_mutex_lock(&sandbox->state);
	old = sandbox->record;
	sandbox->record = copy;
	pthread_mutex_unlock(&sandbox->state);
	sandbox_record_fini(&old);
}

/* What the pool's sandbox was, as far as it matters for what is to be changed. */
struct before {
	struct resources resources;
	bool is_other_network, is_other_start;
};

static struct before note_before(const struct sandbox *sandbox, const struct sandbox_record *draft)
{
	const struct sandbox_record *record = &sandbox->record;

	return (struct before){.resources = record->resources,
		.is_other_network = !json_equal(record->network, draft->network),
		.is_other_start = !json_equal(record->start, draft->start)};
}

/* Makes what runs as the record says. */
static int apply(struct sandbox *sandbox, const struct sandbox_record *draft,
	const struct before *before, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	bool restarts = draft->restarts_start && json_object_size(draft->env) > 0;
	int r = 0;

	if (memcmp(&before->resources, &draft->resources, sizeof(before->resources)) != 0)
		r = driver->ops->set_limits(driver, sandbox->id, &draft->resources, err);
	if (r == 0 && draft->name[0] && driver->ops->set_hostname)
		r = driver->ops->set_hostname(driver, sandbox->id, draft->name, err);
	if (r == 0)
		r = sandbox_network_give(sandbox, before->is_other_network, err);
	if (r == 0)
		r = projects_show(sandbox, err);
	fail_point("claim.limits_set");
	if (r < 0)
		return r;
	process_table_give(sandbox);
	if (restarts)
		start_command_restart(sandbox);
	else if (before->is_other_start)
		start_command_apply(sandbox);
	if (restarts || before->is_other_start)
		ready_check_begin(sandbox);
	return 0;
}

/* 0, UNUSABLE, UNFIT, or an error that a create would have too. *ret_is_given: it is the owner's. */
static int give(struct sandbox *sandbox, const struct sandbox_record *draft, const char *stamp,
	bool *ret_is_given, struct err *err)
{
	struct sandbox_record record;
	struct share *place = NULL;
	struct before before;
	int r = is_usable(sandbox) ? check_fit(sandbox, draft, err) : UNUSABLE;

	if (r == 0)
		r = run_place_take_for(sandbox->engine, &draft->owner, &place, err);
	if (r != 0)
		return r;
	record = record_for(sandbox, draft);
	before = note_before(sandbox, draft);
	r = store_pool_claim(
		sandbox->engine->config.store, &record, stamp, draft->reserved_by, err);
	fail_point("claim.committed");
	if (r != 0) {
		share_give_back(place);
		return r;
	}
	*ret_is_given = true;
	keep_record(sandbox, &record);
	run_place_give_back(sandbox);
	sandbox->place = place;
	r = apply(sandbox, draft, &before, err);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

/* It is its owner's, and not as it should be: nobody was told of it yet. */
static void remove_given(struct sandbox *sandbox, const struct err *why)
{
	struct err err;

	log_warning("sandbox %s cannot be what was asked for: %s", sandbox->id, why->message);
	if (sandbox_purge(sandbox->engine, NULL, sandbox->id, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

static int claim(struct engine *engine, const struct sandbox_record *draft, const char *stamp,
	bool *ret_is_pooled, struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox *sandbox;

	while ((sandbox = pools_take(engine->pools, stamp, ret_is_pooled))) {
		bool is_given = false;
		int r;

		pthread_mutex_lock(&sandbox->life);
		r = give(sandbox, draft, stamp, &is_given, err);
		pthread_mutex_unlock(&sandbox->life);
		if (r == 0) {
			*ret_sandbox = sandbox;
			return 0;
		}
		if (is_given)
			remove_given(sandbox, err);
		/* The thread of the pools finds out what became of it. */
		if (is_given || r == UNUSABLE) {
			sandbox_unref(sandbox);
			continue;
		}
		pools_put_back(engine->pools, stamp, sandbox);
		return r;
	}
	return UNUSABLE;
}

int pool_claim(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	static const struct owner everybody = {0};
	char stamp[STORE_POOL_STAMP_LEN + 1];
	bool is_pooled = false;
	int r = 1;

	if (!is_ordinary(draft) || !pools_are_there(engine->pools))
		return 1;
	if (environment_is_foreign(draft)) {
		pool_plan_stamp(engine, &draft->owner, draft->template_name, draft->image, stamp);
		r = claim(engine, draft, stamp, &is_pooled, ret_sandbox, err);
	}
	if (!is_pooled) {
		pool_plan_stamp(engine, &everybody, draft->template_name, draft->image, stamp);
		r = claim(engine, draft, stamp, &is_pooled, ret_sandbox, err);
	}
	/* One that no waiting sandbox could become says nothing about the size of the pool. */
	if (is_pooled && (r == 0 || r == UNUSABLE))
		pools_count(engine->pools, stamp, r == 0);
	return r <= 0 ? r : 1;
}
