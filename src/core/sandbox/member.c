/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/member.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/member_state.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_row.h"
#include "core/process/start_command.h"
#include "core/sandbox/member_draft.h"
#include "core/sandbox/sandbox_make.h"
#include "core/sandbox/sandbox_prepare.h"
#include "core/sandbox/sandbox_run.h"
#include "core/template/template_options.h"
#include "core/template/templates_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIAL_MS 50 /* until a part counts as one that takes no connections */

static const char *text_of(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));

	return text ? text : "";
}

/* --- finding them --- */

struct sandbox *member_primary(struct sandbox *member)
{
	char parent[ID_LEN + 1];
	struct sandbox *primary;
	struct err ignored;

	memcpy(parent, member->record.parent, sizeof(parent)); /* it never changes */
	if (!parent[0])
		return sandbox_ref(member);
	return sandbox_get(member->engine, NULL, parent, &primary, &ignored) == 0 ? primary : NULL;
}

/* Whether a start command of that name is a part of an app: they are named after these roles. */
static bool is_part(const char *name)
{
	enum member_role role = member_role_parse(name);

	return role == MEMBER_FRONTEND || role == MEMBER_BACKEND;
}

static bool has_part(const struct sandbox_record *record, const char *role)
{
	json_t *start;
	size_t i;

	json_array_foreach(record->start, i, start)
	{
		if (is_part(role) && strcmp(start_spec_name(start), role) == 0)
			return true;
	}
	return false;
}

int member_get(
	struct sandbox *primary, const char *role, struct sandbox **ret_member, struct err *err)
{
	char id[ID_LEN + 1] = "";
	const json_t *entry;

	if (member_role_parse(role) == MEMBER_PRIMARY) {
		*ret_member = sandbox_ref(primary);
		return 0;
	}
	pthread_mutex_lock(&primary->state);
	entry = member_spec_find(primary->record.members, role);
	if (entry)
		snprintf(id, sizeof(id), "%s", text_of(entry, "id"));
	/* A part of an app that runs in the sandbox itself. */
	else if (has_part(&primary->record, role))
		snprintf(id, sizeof(id), "%s", primary->id);
	pthread_mutex_unlock(&primary->state);
	if (!id[0] || sandbox_get(primary->engine, NULL, id, ret_member, err) < 0)
		return err_explain(err, ERR_NOT_FOUND, "member_not_found",
			"its `members` say which roles there are", "sandbox %s has no member %.40s",
			primary->id, role);
	return 0;
}

size_t member_list_ids(struct sandbox *primary, char ids[static MEMBERS_MAX][ID_LEN + 1])
{
	size_t count = 0, i;
	json_t *entry;

	pthread_mutex_lock(&primary->state);
	json_array_foreach(primary->record.members, i, entry)
	{
		const char *id = text_of(entry, "id");

		if (id[0] && count < MEMBERS_MAX && !member_state_is_one(primary))
			snprintf(ids[count++], ID_LEN + 1, "%s", id);
	}
	pthread_mutex_unlock(&primary->state);
	return count;
}

/*
 * References to the handles of all members, in order of start: how many. life is held, so nobody else makes or
 * removes one.
 */
static size_t list(struct sandbox *primary, struct sandbox *members[static MEMBERS_MAX])
{
	char ids[MEMBERS_MAX][ID_LEN + 1];
	size_t known = member_list_ids(primary, ids), count = 0;
	struct err err;

	for (size_t i = 0; i < known; i++) {
		if (sandbox_get(primary->engine, NULL, ids[i], &members[count], &err) == 0)
			count++;
		else if (primary->record.status != SANDBOX_CREATING)
			log_error("sandbox %s: %s", primary->id, err.message);
	}
	return count;
}

/* --- making them --- */

json_t *member_take_drafts(struct sandbox_record *record)
{
	json_t *drafts = json_array(), *entry;
	size_t i;

	json_array_foreach(record->members, i, entry)
	{
		json_t *draft = json_object_get(entry, "draft");
		char id[ID_LEN + 1];

		if (!draft)
			continue;
		id_new(clock_wall_ms(), id);
		json_object_set_new(entry, "id", json_string(id));
		json_object_set(draft, "id", json_object_get(entry, "id"));
		json_object_set(draft, "role", json_object_get(entry, "role"));
		json_array_append(drafts, draft);
		json_object_del(entry, "draft");
	}
	return drafts;
}

/* Takes over the value. */
static void put(json_t **place, json_t *value)
{
	if (!value)
		return;
	json_decref(*place);
	*place = value;
}

static void fill_record(
	const struct sandbox_record *from, const json_t *draft, struct sandbox_record *record)
{
	const char *role = text_of(draft, "role");
	json_t *own = json_deep_copy(member_spec_find(from->members, role));

	sandbox_record_init(record);
	snprintf(record->id, sizeof(record->id), "%s", text_of(draft, "id"));
	snprintf(record->parent, sizeof(record->parent), "%s", from->id);
	snprintf(record->role, sizeof(record->role), "%s", role);
	snprintf(record->template_name, sizeof(record->template_name), "%s",
		text_of(draft, "template"));
	memcpy(record->driver, from->driver, sizeof(record->driver));
	record->owner = from->owner;
	record->status = SANDBOX_CREATING;
	record->resources = template_options_resources(draft);
	record->resources.disk_bytes = 0;
	record->idle_timeout_s = record->lifetime_s = SANDBOX_NO_LIMIT;
	record->is_private = true;
	record->created_at_ms = record->last_active_at_ms = from->created_at_ms;
	put(&record->env, json_deep_copy(json_object_get(draft, "env")));
	put(&record->image, json_deep_copy(json_object_get(draft, "image")));
	put(&record->start, json_deep_copy(json_object_get(draft, "start")));
	put(&record->network, json_deep_copy(from->network));
	put(&record->members, json_pack("[o]", own ? own : json_object()));
}

static int add_rows(struct engine *engine, const struct sandbox_record *primary,
	const json_t *drafts, struct err *err)
{
	json_t *draft;
	size_t i;

	json_array_foreach((json_t *)drafts, i, draft)
	{
		struct sandbox_record record;
		struct sandbox *member;
		int r;

		fill_record(primary, draft, &record);
		r = sandbox_handle_new(engine, &record, store_sandbox_insert, &member, err);
		if (r < 0) {
			err_prefix(err, "member %s", text_of(draft, "role"));
			return r;
		}
		pthread_mutex_unlock(&member->life);
		sandbox_unref(member);
	}
	return 0;
}

int member_add(struct sandbox *primary, const json_t *drafts, struct err *err)
{
	return add_rows(primary->engine, &primary->record, drafts, err);
}

static json_t *describe_draft(struct sandbox *member)
{
	const struct sandbox_record *record = &member->record;
	const struct resources *resources = &record->resources;
	json_t *draft;

	pthread_mutex_lock(&member->state);
	draft = json_pack("{s:s, s:o, s:o, s:o, s:{s:I, s:I, s:I}}", "template",
		record->template_name, "image", json_deep_copy(record->image), "env",
		json_deep_copy(record->env), "start", json_deep_copy(record->start), "resources",
		"cpu_millis", (json_int_t)resources->cpu_millis, "memory_bytes",
		(json_int_t)resources->memory_bytes, "pids", (json_int_t)resources->pids);
	pthread_mutex_unlock(&member->state);
	return draft;
}

json_t *member_describe(struct sandbox *primary)
{
	struct sandbox *members[MEMBERS_MAX];
	size_t count = list(primary, members);
	json_t *entries = json_deep_copy(primary->record.members);

	for (size_t i = 0; i < count; i++) {
		json_t *entry = member_spec_find(entries, members[i]->record.role);

		json_object_set_new(entry, "id", json_string(""));
		json_object_set_new(entry, "draft", describe_draft(members[i]));
		sandbox_unref(members[i]);
	}
	return entries;
}

/* --- starting --- */

/* Why it does not run; of its sandbox nothing else follows from that. Its life is held. */
static void write_failure(struct sandbox *member, const struct err *why)
{
	struct sandbox_record changed;
	struct err err;

	log_warning("member %s of sandbox %s: %s", member->record.role, member->record.parent,
		why->message);
	sandbox_read(member, &changed);
	changed.status = SANDBOX_ERROR;
	snprintf(changed.error_message, sizeof(changed.error_message), "%s%s%s", why->message,
		why->remedy[0] ? ": " : "", why->remedy);
	if (sandbox_row_write(member, &changed, &err) < 0)
		log_error("sandbox %s: %s", member->id, err.message);
	sandbox_record_fini(&changed);
	sandbox_announce(member);
}

/* It waits as its sandbox does. life of both is held. */
static void wait_as_primary(struct sandbox *member)
{
	auto_(sandbox_unrefp) struct sandbox *primary = member_primary(member);

	if (!primary)
		return;
	pthread_mutex_lock(&member->state);
	member->record.is_waiting = primary->record.is_waiting;
	pthread_mutex_unlock(&member->state);
}

int member_start(struct sandbox *member, struct err *err)
{
	static const struct termination by_operator = {.reason = END_OPERATOR};
	struct err ignored;
	int r;

	sandbox_run_settle(member);
	if (sandbox_seems_up(member))
		return 0;
	wait_as_primary(member);
	r = run_place_take(member, err);
	if (r == 0)
		r = store_sandbox_claim(member->engine->config.store, &member->record, err);
	if (r == 0)
		r = sandbox_make_up(member, err);
	if (r == 0) {
		r = sandbox_make_live(member, err);
		if (r < 0 && sandbox_run_end(member, false, &by_operator, &ignored) < 0)
			log_error("sandbox %s: %s", member->id, ignored.message);
	}
	if (r < 0) {
		run_place_give_back(member);
		write_failure(member, err);
	}
	return r;
}

int member_start_all(struct sandbox *primary, bool is_new, struct err *err)
{
	struct sandbox *members[MEMBERS_MAX];
	size_t count = list(primary, members);
	struct err failure;
	int r = 0;

	if (count == 0)
		return 0;
	/* They share its way out, and do not ask for it themselves. */
	if (sandbox_network_open_missing(primary, &failure) < 0)
		log_warning("sandbox %s: %s", primary->id, failure.message);
	for (size_t i = 0; i < count; i++) {
		int started = 0;

		pthread_mutex_lock(&members[i]->life);
		if (r == 0)
			started = member_start(members[i], &failure);
		pthread_mutex_unlock(&members[i]->life);
		if (started < 0 && is_new) {
			*err = failure;
			err_prefix(err, "member %s", members[i]->record.role);
			r = started;
		}
		sandbox_unref(members[i]);
	}
	member_state_wake_watch(primary->engine);
	return r;
}

/* --- ending --- */

/* life of both is held. */
static void end(struct sandbox *member, bool gently, const struct termination *how)
{
	struct termination own = *how;
	struct err err;

	bool is_up = sandbox_seems_up(member) || member->record.status == SANDBOX_CREATING;

	/* A try to start it again while its sandbox was ending failed: it has ended with it all the same. */
	if (!is_up && member->record.status != SANDBOX_ERROR)
		return;
	if (is_up && gently)
		sandbox_run_read_usage(member, &own);
	if ((is_up && sandbox_run_end(member, gently, &own, &err) < 0) ||
		(member->record.status != SANDBOX_CREATING &&
			sandbox_row_write_status(member, SANDBOX_STOPPED, &own, &err) < 0))
		log_error("member %s of sandbox %s: %s", member->record.role, member->record.parent,
			err.message);
}

void member_end_all(struct sandbox *primary, bool gently, const struct termination *how)
{
	struct sandbox *members[MEMBERS_MAX];

	for (size_t i = list(primary, members); i-- > 0;) {
		pthread_mutex_lock(&members[i]->life);
		end(members[i], gently, how);
		pthread_mutex_unlock(&members[i]->life);
		sandbox_unref(members[i]);
	}
}

static int kill_one(struct sandbox *member, struct err *err)
{
	static const struct termination by_operator = {.reason = END_OPERATOR};
	int r;

	pthread_mutex_lock(&member->life);
	r = sandbox_run_end(member, false, &by_operator, err);
	pthread_mutex_unlock(&member->life);
	return r;
}

static int forget_one(struct sandbox *member, struct err *err)
{
	int r;

	pthread_mutex_lock(&member->life);
	sandbox_remove_logs(member);
	r = sandbox_handle_forget(member, store_workspace_delete, err);
	pthread_mutex_unlock(&member->life);
	return r;
}

static int remove_one(struct sandbox *member, struct err *err)
{
	int r = kill_one(member, err);

	return r < 0 ? r : forget_one(member, err);
}

static int each(struct sandbox *primary, int (*act)(struct sandbox *member, struct err *err),
	struct err *err)
{
	struct sandbox *members[MEMBERS_MAX];
	int r = 0;

	for (size_t i = list(primary, members); i-- > 0;) {
		if (r == 0)
			r = act(members[i], err);
		sandbox_unref(members[i]);
	}
	return r;
}

int member_kill_all(struct sandbox *primary, struct err *err)
{
	return each(primary, kill_one, err);
}

void member_forget_all(struct sandbox *primary)
{
	struct err err;

	if (each(primary, forget_one, &err) < 0)
		log_error("members of sandbox %s stay until the next start: %s", primary->id,
			err.message);
}

int member_remove_all(struct sandbox *primary, struct err *err)
{
	return each(primary, remove_one, err);
}

/* --- joining a sandbox that is there --- */

/* Takes back rows of members that did not come to be part of their sandbox. */
static void drop_rows(struct engine *engine, const json_t *drafts)
{
	json_t *draft;
	size_t i;

	json_array_foreach((json_t *)drafts, i, draft)
	{
		auto_(sandbox_unrefp) struct sandbox *member = NULL;
		struct err err;

		if (sandbox_get(engine, NULL, text_of(draft, "id"), &member, &err) == 0 &&
			remove_one(member, &err) < 0)
			log_error("sandbox %s: %s", member->id, err.message);
	}
}

/*
 * The rows of the members come first. If the daemon dies before the row of the sandbox names them, the next one removes
 * them (core/upkeep/reconcile.c). life is held.
 */
static int join(struct sandbox *primary, struct sandbox_record *changed, struct err *err)
{
	json_auto_t *drafts = member_take_drafts(changed);
	struct err ignored;
	int r;

	if (json_array_size(drafts) == 0)
		return 0;
	r = add_rows(primary->engine, changed, drafts, err);
	fail_point("member.rows_added");
	if (r == 0)
		r = sandbox_row_write(primary, changed, err);
	if (r < 0) {
		drop_rows(primary->engine, drafts);
		return r;
	}
	/* One that does not start says so itself, and the watch tries again. */
	if (sandbox_seems_up(primary))
		(void)!member_start_all(primary, false, &ignored);
	return 0;
}

int member_join(struct sandbox *primary, const struct sandbox_spec *spec, char ret_job[ID_LEN + 1],
	struct err *err)
{
	struct sandbox_record changed;
	int r;

	pthread_mutex_lock(&primary->life);
	if (primary->gone || member_state_is_one(primary)) {
		pthread_mutex_unlock(&primary->life);
		return sandbox_not_found(primary->id, err);
	}
	sandbox_read(primary, &changed);
	r = member_draft(primary->engine, &changed.owner, spec, &changed, ret_job, err);
	if (r == 0)
		r = join(primary, &changed, err);
	sandbox_record_fini(&changed);
	pthread_mutex_unlock(&primary->life);
	return r;
}

/* --- pausing --- */

static int freeze(struct sandbox *member, bool frozen, struct err *err)
{
	struct driver *driver = member->engine->config.driver;
	enum sandbox_status from = frozen ? SANDBOX_RUNNING : SANDBOX_PAUSED;
	int r;

	sandbox_run_settle(member);
	if (member->record.status != from)
		return 0;
	r = driver->ops->freeze(driver, member->id, frozen, err);
	if (r == 0)
		r = sandbox_row_write_status(member, frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING,
			&(struct termination){0}, err);
	if (r == 0 && !frozen)
		start_command_resume(member);
	return r;
}

int member_freeze_all(struct sandbox *primary, bool frozen, struct err *err)
{
	struct sandbox *members[MEMBERS_MAX];
	size_t count = list(primary, members);
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&members[i]->life);
		if (r == 0)
			r = freeze(members[i], frozen, err);
		pthread_mutex_unlock(&members[i]->life);
		sandbox_unref(members[i]);
	}
	return r;
}

/* --- after a reset --- */

static void renew(struct sandbox *member)
{
	struct sandbox_record changed;
	struct err err;
	json_t *image;

	sandbox_read(member, &changed);
	sandbox_prepare_again(changed.image);
	if (templates_is_upgradable(member->engine, &changed, &image)) {
		template_options_renew_start(&changed, image);
		put(&changed.image, image);
	}
	if (sandbox_row_write(member, &changed, &err) < 0)
		log_error("sandbox %s: %s", member->id, err.message);
	sandbox_record_fini(&changed);
}

void member_renew_all(struct sandbox *primary)
{
	struct sandbox *members[MEMBERS_MAX];

	for (size_t i = list(primary, members); i-- > 0;) {
		pthread_mutex_lock(&members[i]->life);
		renew(members[i]);
		pthread_mutex_unlock(&members[i]->life);
		sandbox_unref(members[i]);
	}
}

/* --- telling --- */

/* Why a start command could not be run, if that is so. */
static void take_start_error(struct member_view *view, const struct start_command_state *state)
{
	const char *error = start_command_error(state);

	if (error)
		snprintf(view->error_message, sizeof(view->error_message), "%s", error);
}

/* What its start commands add to that it runs: the worst of them counts. */
static const char *describe_run(struct sandbox *sandbox, struct member_view *view)
{
	const char *status = "running";
	struct start_command_state state;
	json_auto_t *starts = NULL;
	json_t *start;
	bool is_held;
	size_t i;

	pthread_mutex_lock(&sandbox->state);
	is_held = sandbox->member.is_held;
	starts = json_deep_copy(sandbox->record.start);
	pthread_mutex_unlock(&sandbox->state);
	if (is_held)
		return "waiting";
	json_array_foreach(starts, i, start)
	{
		start_command_read(sandbox, start_spec_name(start), &state);
		take_start_error(view, &state);
		if (state.status == START_COMMAND_WAITING && state.tried_at_ms)
			return "restarting";
		if (state.status == START_COMMAND_EXITED || state.status == START_COMMAND_KILLED)
			status = "exited";
	}
	return status;
}

static void describe(struct sandbox *sandbox, struct member_view *state)
{
	static const char *const healths[] = {[MEMBER_HEALTH_NONE] = "none",
		[MEMBER_HEALTH_STARTING] = "starting",
		[MEMBER_HEALTH_GOOD] = "healthy",
		[MEMBER_HEALTH_BAD] = "unhealthy"};
	enum sandbox_status status;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->record.status;
	snprintf(state->template_name, sizeof(state->template_name), "%s",
		sandbox->record.template_name);
	snprintf(state->error_message, sizeof(state->error_message), "%s",
		sandbox->record.error_message);
	state->health =
		healths[status == SANDBOX_RUNNING ? sandbox->member.health : MEMBER_HEALTH_NONE];
	pthread_mutex_unlock(&sandbox->state);
	state->status = status == SANDBOX_RUNNING ? describe_run(sandbox, state)
						  : sandbox_status_name(status);
}

/* What a start command does, in the words of members. */
static const char *describe_start(struct sandbox *sandbox, struct member_view *view)
{
	struct start_command_state state;

	start_command_read(sandbox, view->role, &state);
	take_start_error(view, &state);
	switch (state.status) {
	case START_COMMAND_RUNNING:
		return "running";
	case START_COMMAND_WAITING:
		return state.tried_at_ms ? "restarting" : "waiting";
	default:
		return "exited";
	}
}

/*
 * In a word, with the first two numbers of its tag: "postgres15" of "registry.example/postgres:15-alpine", "python312" of
 * "python:3.12.4", and "redis7" of a template of that name.
 */
static void name_runtime(const char *template_name, char *name, size_t size)
{
	const char *last = strrchr(template_name, '/'), *tag;
	size_t len;

	last = last ? last + 1 : template_name;
	len = strcspn(last, ":@");
	tag = last[len] == ':' ? last + len + 1 : "";
	snprintf(name, size, "%.*s", (int)len, last);
	len = strlen(name);
	for (int dots = 0; (isdigit((unsigned char)*tag) || *tag == '.') && len + 1 < size; tag++) {
		if (*tag == '.' && ++dots == 2)
			break;
		if (*tag != '.')
			name[len++] = *tag;
	}
	name[len] = '\0';
}

size_t member_read_all(struct engine *engine, const struct sandbox_record *record,
	struct member_view ret_views[static MEMBERS_MAX])
{
	json_t *entry;
	size_t count = 0, i;

	json_array_foreach(record->members, i, entry)
	{
		struct member_view *state = &ret_views[count];
		auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
		const char *id = text_of(entry, "id");
		struct err ignored;

		if (count == MEMBERS_MAX ||
			sandbox_get(engine, NULL, id[0] ? id : record->id, &sandbox, &ignored) < 0)
			continue;
		*state = (struct member_view){
			.port = (uint16_t)json_integer_value(json_object_get(entry, "port"))};
		snprintf(state->id, sizeof(state->id), "%s", sandbox->id);
		snprintf(state->role, sizeof(state->role), "%s", text_of(entry, "role"));
		describe(sandbox, state);
		name_runtime(
			state->template_name, state->runtime_type, sizeof(state->runtime_type));
		count++;
	}
	return count;
}

static struct member_view *find_view(
	struct member_view views[static MEMBERS_MAX], size_t count, const char *role)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(views[i].role, role) == 0)
			return &views[i];
	}
	return NULL;
}

/* A view of the sandbox itself in a role. */
static void add_view(struct sandbox *sandbox, const char *role, struct member_view *view)
{
	*view = (struct member_view){0};
	snprintf(view->id, sizeof(view->id), "%s", sandbox->id);
	snprintf(view->role, sizeof(view->role), "%s", role);
	describe(sandbox, view);
	name_runtime(view->template_name, view->runtime_type, sizeof(view->runtime_type));
}

/* Where a part serves; 0 if that is not known. */
static uint16_t port_of_start(const json_t *start)
{
	const json_t *env = json_object_get(start, "env");
	const char *port = json_string_value(json_object_get(env, MEMBER_PART_PORT));

	if (!port)
		port = json_string_value(json_object_get(env, "PORT"));
	return port ? (uint16_t)strtoul(port, NULL, 10) : 0;
}

/* What a part of a sandbox that runs does. Whether it takes connections is looked at now: no watch asks after it. */
static void describe_part(struct sandbox *sandbox, struct member_view *view)
{
	struct driver *driver = sandbox->engine->config.driver;
	auto_fd int fd = -1;
	struct err ignored;

	view->error_message[0] = '\0'; /* of another start command */
	view->status = describe_start(sandbox, view);
	view->health = "none";
	if (strcmp(view->status, "running") == 0 && view->port)
		view->health = driver->ops->dial(
				       driver, sandbox->id, view->port, DIAL_MS, &fd, &ignored) < 0
				       ? "unhealthy"
				       : "healthy";
}

size_t member_read_parts(struct engine *engine, const struct sandbox_record *record,
	struct member_view views[static MEMBERS_MAX], size_t count)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err ignored;
	json_t *start;
	size_t i;

	if (json_array_size(record->start) == 0 ||
		sandbox_get(engine, NULL, record->id, &sandbox, &ignored) < 0)
		return count;
	json_array_foreach(record->start, i, start)
	{
		const char *role = start_spec_name(start);

		if (!is_part(role) || find_view(views, count, role))
			continue;
		if (!find_view(views, count, member_roles[MEMBER_PRIMARY]) && count < MEMBERS_MAX)
			add_view(sandbox, member_roles[MEMBER_PRIMARY], &views[count++]);
		if (count == MEMBERS_MAX)
			break;
		add_view(sandbox, role, &views[count]);
		views[count].port = port_of_start(start);
		if (record->status == SANDBOX_RUNNING)
			describe_part(sandbox, &views[count]);
		count++;
	}
	return count;
}
