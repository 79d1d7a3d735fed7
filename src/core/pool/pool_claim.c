/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row comes first, with the owner in it: from then on the sandbox is somebody's, whatever happens to the daemon.
 * What is set after that concerns the sandbox that runs; a daemon that takes it up reads it from the row, and from the
 * rows of its processes that start commands are to begin anew.
 */
#include "core/pool/pool_claim.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/process/environment.h"
#include "core/process/process_table.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/project/project_defaults.h"
#include "core/project/projects.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/unfinished.h"
#include "core/template/template_options.h"
#include "model/access/owner.h"

#include <errno.h>
#include <string.h>

#define UNUSABLE 1 /* it is not the pool's any more, or does not run */
#define UNFIT	 2 /* it cannot become what is asked for, but what another asks for */
#define ILL	 3 /* it was ready, and is not any more */

/* Whether a sandbox that was made of its template alone can become this. */
static bool is_ordinary(const struct sandbox_record *draft)
{
	return (!draft->id[0] || draft->reserved_by) && !draft->snapshot[0] && !draft->job[0] &&
	       !owner_is_pool(&draft->owner) && json_object_size(draft->dependencies) == 0;
}

/*
 * A sandbox with its members: itself, then they, all with their life locks held. The records are those that they are to
 * have, and the places those of their owner.
 */
struct group {
	struct sandbox *of[MEMBERS_MAX + 1];
	struct sandbox_record records[MEMBERS_MAX + 1];
	struct share *places[MEMBERS_MAX + 1];
	size_t count;
};

static bool is_usable(const struct sandbox *sandbox)
{
	return !sandbox->gone && sandbox->record.status == SANDBOX_RUNNING && sandbox->link &&
	       !sandbox->ending;
}

/* The draft of a member of that role; borrowed. */
static const json_t *draft_of(const struct sandbox_record *draft, const char *role)
{
	return json_object_get(member_spec_find(draft->members, role), "draft");
}

/* Takes over the value. */
static void put(json_t **place, json_t *value)
{
	json_decref(*place);
	*place = value;
}

/* What it has of its members names their passwords, which are those of the members that wait. */
static void keep_given(const json_t *waiting, struct sandbox_record *record)
{
	const char *primary = member_roles[MEMBER_PRIMARY];
	const json_t *asked = member_spec_find(record->members, primary);
	json_t *entry = member_spec_find(waiting, primary), *given, *value;
	const json_t *has = json_object_get(entry, "given");
	const char *name;

	if (!entry)
		return;
	given = json_object();
	json_object_foreach(json_object_get(asked, "given"), name, value)
	{
		json_t *now = json_object_get(has, name);

		json_object_set(given, name, now ? now : value);
	}
	json_object_update(record->env, given);
	json_object_set(entry, "port", json_object_get(asked, "port"));
	json_object_set_new(entry, "given", given);
}

/* Whether its start commands would find other variables than those that they run with. */
static bool is_other_env(const struct sandbox *sandbox, const struct sandbox_record *record)
{
	json_auto_t *of_project = project_defaults_env(sandbox->engine->config.projects, record);

	return !json_equal(sandbox->record.env, record->env) || json_object_size(of_project) > 0;
}

/* The record that the sandbox is to have. */
static void fill_own(const struct sandbox *sandbox, const struct sandbox_record *draft,
	struct sandbox_record *record)
{
	json_t *members = json_deep_copy(sandbox->record.members);

	sandbox_record_copy(record, draft);
	memcpy(record->id, sandbox->id, sizeof(record->id));
	record->status = SANDBOX_RUNNING;
	put(&record->image, json_deep_copy(sandbox->record.image));
	keep_given(members, record);
	put(&record->members, members);
	record->created_at_ms = record->last_active_at_ms =
		store_clock_ms(sandbox->engine->config.store);
	record->started_at_ms = sandbox->record.started_at_ms;
	if (record->lifetime_s != SANDBOX_NO_LIMIT)
		record->expires_at_ms = record->created_at_ms + record->lifetime_s * 1000;
	record->reserved_by = NULL;
	record->restarts_start = draft->restarts_start && is_other_env(sandbox, record);
}

/* That of a member: what its sandbox may do it may, and its limits are those that are asked for. */
static void fill_member(const struct sandbox *member, const struct sandbox_record *draft,
	const struct sandbox_record *own, struct sandbox_record *record)
{
	sandbox_record_copy(record, &member->record);
	record->owner = own->owner;
	record->is_waiting = false;
	record->created_at_ms = record->last_active_at_ms = own->created_at_ms;
	record->resources = template_options_resources(draft_of(draft, record->role));
	record->resources.disk_bytes = 0;
	put(&record->network, json_deep_copy(own->network));
}

static void release(struct group *group)
{
	for (size_t i = group->count; i-- > 0;) {
		sandbox_record_fini(&group->records[i]);
		share_give_back(group->places[i]);
		if (i == 0)
			continue;
		pthread_mutex_unlock(&group->of[i]->life);
		sandbox_unref(group->of[i]);
	}
}

/* UNUSABLE if one of them does not run. The life lock of the sandbox is held. */
static int gather(
	struct sandbox *sandbox, const struct sandbox_record *draft, struct group *ret_group)
{
	char ids[MEMBERS_MAX][ID_LEN + 1];
	size_t members = member_list_ids(sandbox, ids);
	struct group group = {.of = {sandbox}};
	struct err ignored;
	bool is_whole = is_usable(sandbox);

	fill_own(sandbox, draft, &group.records[0]);
	group.count = 1;
	for (size_t i = 0; is_whole && i < members; i++) {
		struct sandbox *member;

		if (sandbox_get(sandbox->engine, NULL, ids[i], &member, &ignored) < 0) {
			is_whole = false;
			break;
		}
		pthread_mutex_lock(&member->life);
		group.of[group.count] = member;
		fill_member(member, draft, &group.records[0], &group.records[group.count]);
		group.count++;
		is_whole = is_usable(member);
	}
	if (!is_whole) {
		release(&group);
		return UNUSABLE;
	}
	*ret_group = group;
	return 0;
}

static bool can_fit(const struct group *group)
{
	struct driver *driver = group->of[0]->engine->config.driver;

	for (size_t i = 0; i < group->count; i++) {
		if (!driver_can(driver, DRIVER_LIVE_RESIZE) &&
			memcmp(&group->records[i].resources, &group->of[i]->record.resources,
				sizeof(struct resources)) != 0)
			return false;
	}
	return true;
}

static int take_places(struct group *group, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < group->count; i++)
		r = run_place_take_for(
			group->of[i]->engine, &group->records[i].owner, &group->places[i], err);
	return r;
}

/*
 * They have one disk, and what their templates have brought onto it must fit: UNFIT if it does not. A daemon that takes
 * one up sets the limit that the row says (core/engine/disk_reserve.h). life is held.
 */
static int set_disk(
	const struct sandbox *sandbox, uint64_t from_bytes, uint64_t to_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_usage usage = {0};
	int r = 0;

	if (from_bytes == to_bytes)
		return 0;
	if (to_bytes < from_bytes)
		r = driver->ops->usage(driver, sandbox->id, &usage, err);
	if (r == 0 && usage.bytes > to_bytes)
		return UNFIT;
	if (r == 0)
		r = driver->ops->resize(driver, sandbox->id, to_bytes,
			sandbox->growth == GROWTH_HELD ? disk_reserve_growth(sandbox->engine) : 0,
			err);
	return r == -ENOENT ? UNUSABLE : r;
}

/* They wait on, the first so many of them with the limits that they had. */
static void set_back(const struct group *group, size_t count)
{
	struct driver *driver = group->of[0]->engine->config.driver;
	struct err err;

	if (set_disk(group->of[0], group->records[0].resources.disk_bytes,
		    group->of[0]->record.resources.disk_bytes, &err) < 0)
		log_warning("sandbox %s: %s", group->of[0]->id, err.message);
	for (size_t i = 0; i < count && driver_can(driver, DRIVER_LIVE_RESIZE); i++) {
		if (driver->ops->set_limits(driver, group->of[i]->id,
			    &group->of[i]->record.resources, true, &err) < 0)
			log_warning("sandbox %s: %s", group->of[i]->id, err.message);
	}
}

/*
 * The limits, and the weight of those that somebody waits for, come before the row: the driver alone knows whether the
 * memory that one holds is less than its limit, and a daemon that takes one up sets what the row says. UNFIT if it is not.
 */
static int set_limits(const struct group *group, struct err *err)
{
	struct driver *driver = group->of[0]->engine->config.driver;
	int r = 0;

	for (size_t i = 0; i < group->count && driver_can(driver, DRIVER_LIVE_RESIZE); i++) {
		r = driver->ops->set_limits(
			driver, group->of[i]->id, &group->records[i].resources, false, err);
		if (r == 0)
			continue;
		set_back(group, i + 1);
		return r == -ENOENT ? UNUSABLE : r == -EEXIST ? UNFIT : r;
	}
	r = set_disk(group->of[0], group->of[0]->record.resources.disk_bytes,
		group->records[0].resources.disk_bytes, err);
	if (r != 0)
		set_back(group, group->count);
	fail_point("claim.limits_set");
	return r;
}

/* What the pool's sandbox was, as far as it matters for what is to be changed. */
struct before {
	bool is_other_network, is_other_start;
};

static struct before note_before(const struct sandbox *sandbox, const struct sandbox_record *record)
{
	return (struct before){
		.is_other_network = !json_equal(sandbox->record.network, record->network),
		.is_other_start = !json_equal(sandbox->record.start, record->start)};
}

/* The records are theirs now, and what they take counts as their owner's. */
static void keep_records(struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		struct sandbox *sandbox = group->of[i];
		struct sandbox_record old;

		atomic_store(&sandbox->last_active_ms, group->records[i].last_active_at_ms);
		atomic_store(&sandbox->is_unowned, false);
		pthread_mutex_lock(&sandbox->state);
		old = sandbox->record;
		sandbox->record = group->records[i];
		pthread_mutex_unlock(&sandbox->state);
		group->records[i] = old;
		run_place_give_back(sandbox);
		sandbox->place = take_ptr(&group->places[i]);
		process_table_give(sandbox);
	}
}

/* Makes what runs as the record says. A daemon that finds it cut short does the same (core/upkeep/reconcile.c). */
static int apply(struct sandbox *sandbox, const struct before *before, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	bool restarts = sandbox->record.restarts_start;
	int r = driver_give_name(driver, sandbox->id, sandbox->record.name, err);

	sandbox_network_give(sandbox, before->is_other_network);
	if (r == 0)
		r = projects_show(sandbox, err);
	fail_point("claim.applied");
	if (r < 0)
		return r;
	if (restarts)
		start_command_restart(sandbox);
	else if (before->is_other_start)
		start_command_apply(sandbox);
	if (restarts || before->is_other_start)
		ready_check_begin(sandbox);
	return 0;
}

/* The same once all of it is gathered. */
static int give_group(struct group *group, const struct sandbox_record *draft, const char *stamp,
	bool *ret_is_given, struct err *err)
{
	struct sandbox *sandbox = group->of[0];
	struct before before = note_before(sandbox, &group->records[0]);
	int r = can_fit(group) ? take_places(group, err) : UNFIT;

	if (r == 0)
		r = set_limits(group, err);
	if (r != 0)
		return r;
	r = store_pool_claim(sandbox->engine->config.store, group->records, group->count, stamp,
		draft->reserved_by, err);
	fail_point("claim.committed");
	if (r != 0) {
		set_back(group, group->count);
		return r;
	}
	*ret_is_given = true;
	keep_records(group);
	r = apply(sandbox, &before, err);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

/* Whether it is as ready as when it was last looked at. */
static bool is_well(struct sandbox *sandbox, const struct pool_mark *mark)
{
	struct pool_mark now = *mark;
	bool ignored;

	return pool_ready_judge(sandbox, &now, &ignored) == POOL_WELL;
}

/* 0, UNUSABLE, UNFIT, ILL, or an error that a create would have too. *ret_is_given: it is the owner's. life is held. */
static int give(struct sandbox *sandbox, const struct sandbox_record *draft, const char *stamp,
	const struct pool_mark *mark, bool *ret_is_given, struct err *err)
{
	struct group group;
	int r = is_well(sandbox, mark) ? gather(sandbox, draft, &group) : ILL;

	if (r != 0)
		return r;
	r = give_group(&group, draft, stamp, ret_is_given, err);
	release(&group);
	return r;
}

/*
 * It is its owner's, and not as it should be: nobody was told of it yet. If it cannot be removed, as when the driver is
 * gone, the next daemon does that, and no other is given away: it would have its name.
 */
static int remove_given(struct sandbox *sandbox, const struct err *why)
{
	struct err err;
	int r;

	log_warning("sandbox %s cannot be what was asked for: %s", sandbox->id, why->message);
	r = sandbox_purge(sandbox->engine, NULL, sandbox->id, &err);
	if (r == 0)
		return 0;
	log_error("sandbox %s: %s", sandbox->id, err.message);
	if (unfinished_mark(sandbox->engine, sandbox->id, UNFINISHED_PURGE, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	return r;
}

static int claim(struct engine *engine, const struct sandbox_record *draft, const char *stamp,
	bool *ret_is_pooled, struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox *sandbox;
	struct pool_mark mark;

	while ((sandbox = pools_take(engine->pools, stamp, &mark, ret_is_pooled))) {
		bool is_given = false;
		int r;

		pthread_mutex_lock(&sandbox->life);
		r = give(sandbox, draft, stamp, &mark, &is_given, err);
		pthread_mutex_unlock(&sandbox->life);
		if (r == 0) {
			*ret_sandbox = sandbox;
			return 0;
		}
		if (is_given && remove_given(sandbox, err) < 0) {
			sandbox_unref(sandbox);
			return r;
		}
		/* The thread of the pools finds out what became of it. */
		if (is_given || r == UNUSABLE) {
			sandbox_unref(sandbox);
			continue;
		}
		pools_put_back(engine->pools, stamp, sandbox, &mark, r != ILL);
		if (r != ILL)
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
		pool_plan_stamp(engine, &draft->owner, draft, stamp);
		r = claim(engine, draft, stamp, &is_pooled, ret_sandbox, err);
	}
	if (!is_pooled) {
		pool_plan_stamp(engine, &everybody, draft, stamp);
		r = claim(engine, draft, stamp, &is_pooled, ret_sandbox, err);
	}
	/* One that no waiting sandbox could become says nothing about the size of the pool. */
	if (is_pooled && (r == 0 || r == UNUSABLE))
		pools_count(engine->pools, stamp, r == 0);
	return r <= 0 ? r : 1;
}
