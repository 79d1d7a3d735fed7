/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: interpreters that keep their state between executions (core/context/context.h). */
#include "core/context/context.h"

#include "api/env_body.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/process/command_body.h"
#include "core/execution/language.h"

#include <stdio.h>

struct create_body {
	const char *language, *cwd;
	const json_t *env;
	int64_t idle_timeout_s;
};

#define AT(member) offsetof(struct create_body, member)

static const struct field create_rows[] = {
	{"language", FIELD_STRING, AT(language), 1, EXECUTION_LANGUAGE_MAX, FIELD_REQUIRED,
		"What its code is written in: python, javascript or typescript.",
		.choices = language_names},
	{"cwd", FIELD_STRING, AT(cwd), 1, AGENT_PATH_MAX - 1, 0,
		"Where it begins; /workspace if left out.", .check = command_body_check_cwd},
	{"env", FIELD_STRING_MAP, AT(env), 0, SPEC_ENV_MAX, 0,
		"Environment, on top of the sandbox's.", .check = env_body_check},
	{"idle_timeout_s", FIELD_INTEGER, AT(idle_timeout_s), 0, CONTEXT_IDLE_MAX_S, 0,
		"It ends when nothing ran in it for so long; 3600 if left out, 0: never."},
};
const struct fields contexts_fields = FIELDS(create_rows);

static json_t *to_json(const struct api *api, const struct context_view *view)
{
	const struct context_record *record = &view->record;
	char process[PROCESS_NAME_MAX];

	process_name_format(record->process, process);
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
		record->id, "sandbox_id", record->sandbox_id, "language", record->language,
		"status", view->status, "state", record->is_lost ? "lost" : "kept", "cwd",
		record->cwd[0] ? json_string(record->cwd) : json_null(), "idle_timeout_s",
		(json_int_t)record->idle_timeout_s, "starts", (json_int_t)record->starts, "waiting",
		(json_int_t)view->waiting, "execution_id",
		view->execution[0] ? json_string(view->execution) : json_null(), "process",
		record->process ? json_string(process) : json_null(), "reason",
		record->reason[0] ? json_string(record->reason) : json_null(), "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "used_at",
		api_stored_time_to_json(api, record->used_at_ms), "ended_at",
		api_stored_time_to_json(api, record->ended_at_ms));
}

static void answer(struct request *req, int status, struct context *context)
{
	struct context_view view;

	context_read(context, &view);
	request_set_detail(req, view.record.id);
	request_answer_json(req, status, to_json(request_context(req), &view));
	context_record_fini(&view.record);
}

/* The context that the path names. */
static int find(struct request *req, struct api *api, struct context **ret_context, struct err *err)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	return r < 0 ? r
		     : context_get(api->contexts, sandbox, request_param(req, "context"),
			       ret_context, err);
}

HANDLER(contexts_create)
{
	struct api *api = context;
	struct create_body body = {0};
	struct text_pair env[SPEC_ENV_MAX];
	struct context *made;
	struct sandbox *sandbox;
	struct context_spec spec;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&contexts_fields, &body);
	if (r == 0)
		r = fields_decode(&contexts_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	spec = (struct context_spec){.language = body.language,
		.cwd = body.cwd,
		.env = {env, fields_copy_map(body.env, env)},
		.idle_timeout_s =
			body.idle_timeout_s >= 0 ? body.idle_timeout_s : CONTEXT_IDLE_DEFAULT_S};
	r = context_create(api->contexts, sandbox, &spec, &made, err);
	if (r < 0)
		return r;
	answer(req, 201, made);
	context_unref(made);
	return 0;
}

struct listing {
	const struct api *api;
	json_t *items;
};

static void list_one(const struct context_view *view, void *arg)
{
	struct listing *listing = arg;

	json_array_append_new(listing->items, to_json(listing->api, view));
}

HANDLER(contexts_all)
{
	struct api *api = context;
	struct listing listing = {.api = api, .items = json_array()};
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = contexts_list(api->contexts, sandbox, list_one, &listing, err);
	if (r == 0)
		request_answer_json(
			req, 200, list_page_whole("contexts", json_incref(listing.items)));
	json_decref(listing.items);
	return r;
}

HANDLER(contexts_get)
{
	struct context *found;
	int r = find(req, context, &found, err);

	if (r < 0)
		return r;
	answer(req, 200, found);
	context_unref(found);
	return 0;
}

HANDLER(contexts_interrupt)
{
	struct context *found;
	int r = find(req, context, &found, err);

	if (r < 0)
		return r;
	r = context_interrupt(found, err);
	if (r == 0)
		answer(req, 200, found);
	context_unref(found);
	return r;
}

HANDLER(contexts_restart)
{
	struct context *found;
	int r = find(req, context, &found, err);

	if (r < 0)
		return r;
	r = context_restart(found, err);
	if (r == 0)
		answer(req, 200, found);
	context_unref(found);
	return r;
}

HANDLER(contexts_delete)
{
	struct context *found;
	int r = find(req, context, &found, err);

	if (r < 0)
		return r;
	r = context_delete(found, err);
	if (r == 0)
		request_answer_empty(req, 204);
	context_unref(found);
	return r;
}
