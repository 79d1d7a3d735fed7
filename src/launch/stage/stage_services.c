/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services of an app as members of its sandbox. They are made when its variables are, and start while its packages are
 * installed; the parts of the app wait for them. A launch that finds them there leaves them as they are.
 */
#include "base/clock.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"
#include "core/process/start_command.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox_request.h"
#include "launch/app/app_service.h"
#include "launch/stage/env_file.h"
#include "launch/stage/pipeline.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS	     200
#define HEALTHY_MS   90000
#define RESTARTS_MAX 2
#define LINE_LEN     400
#define REMEDY	     "say \"services\": [] and give its address in env, or see to the cause and retry"

static const char *role_name(const struct app_service *service)
{
	return member_roles[service->role];
}

static bool has_member(struct pipeline *pipeline, const struct app_service *service)
{
	struct sandbox_record record;
	bool has;

	sandbox_read(pipeline->sandbox, &record);
	has = member_spec_find(record.members, role_name(service)) != NULL;
	sandbox_record_fini(&record);
	return has;
}

/* --- what the app's owner says of them --- */

/* The address that somebody gave to the app: in the request, in its own .env, or to the sandbox. A new text, or NULL. */
static char *given_address(struct pipeline *pipeline, const struct app_service *service)
{
	const char *asked = json_string_value(
		json_object_get(json_object_get(pipeline->input, "env"), service->variable));
	struct sandbox_record record;
	char *found = asked ? mem_strdup(asked) : NULL;

	for (int role = 0; role < ROLE_COUNT && !found; role++)
		found = env_file_value(pipeline->env_files[role].own, service->variable);
	if (found)
		return found;
	sandbox_read(pipeline->sandbox, &record);
	asked = json_string_value(json_object_get(record.env, service->variable));
	found = asked ? mem_strdup(asked) : NULL;
	sandbox_record_fini(&record);
	return found;
}

/* A member to be asked for, with the texts that it borrows. */
struct wanted {
	const struct app_service *service;
	struct app_service_address address;
	struct text_pair env[3];
};

static void put_env(struct wanted *wanted, size_t *count, const char *name, const char *value)
{
	if (value[0])
		wanted->env[(*count)++] = (struct text_pair){name, value};
}

static struct member_spec make_spec(struct wanted *wanted)
{
	const struct app_service_address *address = &wanted->address;
	bool is_database = wanted->service->role == MEMBER_DATABASE;
	size_t count = 0;

	if (is_database) {
		put_env(wanted, &count, "POSTGRES_USER", address->user);
		put_env(wanted, &count, "POSTGRES_PASSWORD", address->password);
		put_env(wanted, &count, "POSTGRES_DB", address->database);
	} else {
		put_env(wanted, &count, "REDIS_PASSWORD", address->password);
	}
	return (struct member_spec){.role = role_name(wanted->service),
		.template_name = wanted->service->template_name,
		.env = {.pairs = wanted->env, .count = count},
		.resources = {.memory_bytes = wanted->service->memory_bytes}};
}

/* Whether a member is to be made. One that the app has elsewhere is not. */
static bool is_wanted(
	struct pipeline *pipeline, const struct app_service *service, struct wanted *ret_wanted)
{
	auto_free char *given =
		has_member(pipeline, service) ? NULL : given_address(pipeline, service);

	*ret_wanted = (struct wanted){.service = service};
	if (has_member(pipeline, service)) {
		pipeline_log(
			pipeline, "%s: the member %s is there", service->name, role_name(service));
		return false;
	}
	if (given && (!app_service_address_read(service, given, &ret_wanted->address) ||
			     !ret_wanted->address.is_local)) {
		pipeline_log(pipeline, "%s: the app has its own, as %s says", service->name,
			service->variable);
		return false;
	}
	return true;
}

/* --- making them --- */

/* Tells the lines of a job's log as they come. */
static void tell_job(struct pipeline *pipeline, const char *name, struct output_cursor *cursor,
	char line[LINE_LEN + 1], size_t *len)
{
	struct output_piece piece;
	char data[1024];

	for (;;) {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		if (piece.kind == OUTPUT_NONE)
			return;
		for (uint64_t i = 0; piece.kind != OUTPUT_CUT && i < piece.next - piece.offset;
			i++) {
			if (data[i] != '\n' && *len < LINE_LEN)
				line[(*len)++] = data[i];
			if (data[i] != '\n')
				continue;
			line[*len] = '\0';
			pipeline_log(pipeline, "%s: %s", name, line);
			*len = 0;
		}
	}
}

static void ignore_change(void *arg)
{
	(void)arg;
}

/* Waits until a template was built, and tells of it. The job may be the operator's. */
static int await_template(
	struct pipeline *pipeline, const char *job, const char *name, struct err *err)
{
	struct jobs *jobs = pipeline->jobs;
	struct job_follower *follower = NULL;
	struct output_cursor *cursor = NULL;
	char line[LINE_LEN + 1];
	size_t len = 0;
	struct err ignored;
	int r;

	pipeline_log(pipeline, "%s: the template is made first, by the job %s", name, job);
	if (job_follow(jobs, NULL, job, ignore_change, NULL, &follower, &ignored) == 0)
		cursor = output_cursor_new(job_follower_log(follower), 0);
	do {
		poll(NULL, 0, LOOK_MS);
		r = job_must_stop(pipeline->job) ? -ECANCELED : job_end(jobs, NULL, job, err);
		if (cursor)
			tell_job(pipeline, name, cursor, line, &len);
	} while (r == 1);
	output_cursor_free(cursor);
	if (follower)
		job_unfollow(follower);
	if (r == 0 || r == -ECANCELED)
		return r;
	return pipeline_fail(pipeline, "service_failed", REMEDY,
		"the template %s of a service cannot be made: %s", name, err->message);
}

static int make_members(
	struct pipeline *pipeline, struct wanted *wanted, size_t count, struct err *err)
{
	struct member_spec specs[APP_SERVICES_MAX];
	char job[ID_LEN + 1];

	for (size_t i = 0; i < count; i++)
		specs[i] = make_spec(&wanted[i]);
	/* One at a time, so that it is known whose template is not there. */
	for (size_t i = 0; i < count; i++) {
		const char *name = wanted[i].service->template_name;
		int r;

		while ((r = sandbox_request_add_members(pipeline->sandbox, &pipeline->caller,
				&specs[i], 1, job, err)) == 1) {
			r = await_template(pipeline, job, name, err);
			if (r < 0)
				return r;
		}
		if (r < 0)
			return pipeline_fail(pipeline, "service_failed", REMEDY,
				"the member %s cannot be made: %s", specs[i].role, err->message);
		pipeline_log(pipeline, "%s: made the member %s of the template %s",
			wanted[i].service->name, specs[i].role, name);
	}
	return 0;
}

int services_make(struct pipeline *pipeline, struct err *err)
{
	json_t *found = json_object_get(pipeline->detection.document, "services"), *entry;
	struct wanted wanted[APP_SERVICES_MAX];
	size_t count = 0, i;

	json_array_foreach(found, i, entry)
	{
		const struct app_service *service =
			app_service_find(json_string_value(json_object_get(entry, "name")));

		if (service && count < APP_SERVICES_MAX &&
			is_wanted(pipeline, service, &wanted[count]))
			count++;
	}
	return make_members(pipeline, wanted, count, err);
}

void services_add_env(struct pipeline *pipeline, json_t *env)
{
	struct sandbox_record record;

	sandbox_read(pipeline->sandbox, &record);
	for (size_t i = 0; i < APP_SERVICES_MAX; i++) {
		json_t *value = json_object_get(record.env, app_services[i].variable);

		if (value && member_spec_find(record.members, role_name(&app_services[i])))
			json_object_set(env, app_services[i].variable, value);
	}
	sandbox_record_fini(&record);
}

/* --- waiting for them --- */

static bool is_service(const struct member_view *view)
{
	for (size_t i = 0; i < APP_SERVICES_MAX; i++) {
		if (strcmp(view->role, role_name(&app_services[i])) == 0)
			return true;
	}
	return false;
}

/* Whether the app need not wait for it; of the sandbox itself, whether its start commands are held back. */
static bool is_well(const struct member_view *view)
{
	if (strcmp(view->role, member_roles[MEMBER_PRIMARY]) == 0)
		return strcmp(view->status, "waiting") != 0;
	return !is_service(view) ||
	       (strcmp(view->status, "running") == 0 &&
		       (strcmp(view->health, "healthy") == 0 || strcmp(view->health, "none") == 0));
}

/* What a member runs: a reference to it, or NULL. */
static struct sandbox *read_member(
	struct pipeline *pipeline, const char *role, struct start_command_state *ret_state)
{
	struct sandbox *member;
	struct sandbox_record record;
	struct err ignored;

	if (member_get(pipeline->sandbox, role, &member, &ignored) < 0)
		return NULL;
	*ret_state = (struct start_command_state){0};
	sandbox_read(member, &record);
	if (json_array_size(record.start) > 0)
		start_command_read(
			member, start_spec_name(json_array_get(record.start, 0)), ret_state);
	sandbox_record_fini(&record);
	return member;
}

static void keep_member_lines(struct pipeline *pipeline, const char *role)
{
	struct start_command_state state;
	auto_(sandbox_unrefp) struct sandbox *member = read_member(pipeline, role, &state);
	char tail[SANDBOX_COMMAND_TAIL + 1];

	if (!member)
		return;
	pipeline_read_output(member, state.process, tail);
	pipeline_keep_lines(pipeline, tail);
}

/* Whether to wait any longer makes no sense: its program ends again and again, or it cannot be started at all. */
static bool is_hopeless(struct pipeline *pipeline, const struct member_view *view)
{
	struct start_command_state state;
	auto_(sandbox_unrefp) struct sandbox *member = read_member(pipeline, view->role, &state);

	return strcmp(view->health, "unhealthy") == 0 || strcmp(view->status, "error") == 0 ||
	       strcmp(view->status, "exited") == 0 ||
	       (member && is_service(view) && state.restarts >= RESTARTS_MAX);
}

static int fail_by_member(struct pipeline *pipeline, const struct member_view *view)
{
	keep_member_lines(pipeline, view->role);
	return pipeline_fail(pipeline, "service_failed", REMEDY,
		"the member %s (%s) is not healthy: it is %s%s%s", view->role, view->template_name,
		view->status, view->error_message[0] ? ", " : "", view->error_message);
}

int services_await(struct pipeline *pipeline)
{
	uint64_t until_ms = clock_steady_ms() + HEALTHY_MS;
	bool is_told = false;

	for (;;) {
		struct member_view views[MEMBERS_MAX];
		const struct member_view *ill = NULL;
		struct sandbox_record record;
		size_t count;

		sandbox_read(pipeline->sandbox, &record);
		count = member_read_all(pipeline->engine, &record, views);
		sandbox_record_fini(&record);
		for (size_t i = 0; i < count; i++)
			ill = !ill && !is_well(&views[i]) ? &views[i] : ill;
		if (!ill)
			return 0;
		if (job_must_stop(pipeline->job))
			return -ECANCELED;
		if (!is_told)
			pipeline_log(pipeline, "waiting for the member %s", ill->role);
		is_told = true;
		if (clock_steady_ms() >= until_ms || is_hopeless(pipeline, ill))
			return fail_by_member(pipeline, ill);
		poll(NULL, 0, LOOK_MS);
	}
}
