/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, and what detection and validation say of a project (launch/launches.h). */
#include "api/env_body.h"
#include "api/handlers.h"
#include "api/launch/launch_body.h"
#include "api/list_page.h"
#include "core/project/projects.h"
#include "core/sandbox/sandbox_request.h"
#include "launch/app/app_service.h"
#include "launch/app/detection.h"
#include "launch/app/project_set.h"
#include "launch/check/validation.h"
#include "launch/launches.h"
#include "launch/pipeline_run.h"
#include "store/store_clock.h"
#include "store/work/store_launch.h"
#include "store/work/store_project.h"

#include <stdio.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define DAYS_MAX	   3660

/* --- bodies --- */

struct part_body {
	const char *directory, *framework, *command, *install, *entry;
	int64_t port;
};

struct timeouts_body {
	int64_t install_s, backend_s, frontend_s;
};

struct launch_body {
	const char *project, *sandbox, *template_name, *preview, *from;
	const json_t *env, *services;
	struct part_body frontend, backend;
	struct timeouts_body timeouts;
};

struct retry_body {
	const char *from;
};

#define PART(member) offsetof(struct part_body, member)
static const struct field part_rows[] = {
	{"directory", FIELD_STRING, PART(directory), 0, APP_DIRECTORY_MAX - 1, 0,
		"Where it is in the app; empty: at its root."},
	{"framework", FIELD_STRING, PART(framework), 1, 32, 0, "What it is made with."},
	{"command", FIELD_STRING, PART(command), 1, APP_COMMAND_MAX - 64, 0,
		"A line for /bin/sh that starts it, in its directory."},
	{"install", FIELD_STRING, PART(install), 1, APP_COMMAND_MAX - 64, 0,
		"A line for /bin/sh that installs its packages."},
	{"entry", FIELD_STRING, PART(entry), 1, APP_ENTRY_MAX - 1, 0, "Its entry file."},
	{"port", FIELD_INTEGER, PART(port), 1, 65535, 0, "Where it listens."},
};

#define SECONDS(member) offsetof(struct timeouts_body, member)
static const struct field timeouts_rows[] = {
	{"install_s", FIELD_INTEGER, SECONDS(install_s), 1, 3600, 0,
		"How long installing may take; 120 if left out."},
	{"backend_s", FIELD_INTEGER, SECONDS(backend_s), 1, 3600, 0,
		"How long the backend may take to answer; 30 if left out."},
	{"frontend_s", FIELD_INTEGER, SECONDS(frontend_s), 1, 3600, 0,
		"The same of the frontend; 45 if left out."},
};

static const char *const preview_choices[] = {"host", "path", NULL};

static const char *check_services(const json_t *names)
{
	json_t *name;
	size_t i;

	json_array_foreach((json_t *)names, i, name)
	{
		if (!app_service_find(json_string_value(name)))
			return "must name postgres and redis alone";
	}
	return NULL;
}

static const char *check_stage(const json_t *name)
{
	return pipeline_has_stage(json_string_value(name)) ? NULL : "must be the name of a stage";
}

#define AT(member) offsetof(struct launch_body, member)
#define LAUNCH_ROWS                                                                                \
	{"env", FIELD_STRING_MAP, AT(env), 0, 48, 0,                                               \
		"Variables of its processes and, but for NODE_ENV, of what installs packages.",    \
		.check = env_body_check},                                                          \
		{"frontend", FIELD_OBJECT, AT(frontend), 0, 0, FIELD_OR_FALSE,                     \
			"What is known better than detected of its frontend; false: it has none.", \
			.sub = part_rows, .sub_count = array_len(part_rows)},                      \
		{"backend", FIELD_OBJECT, AT(backend), 0, 0, FIELD_OR_FALSE,                       \
			"The same of its backend.", .sub = part_rows,                              \
			.sub_count = array_len(part_rows)},                                        \
		{"services", FIELD_STRING_LIST, AT(services), 0, APP_SERVICES_MAX, 0,              \
			"The services that are made members of the sandbox (`postgres`, `redis`) " \
			"instead of those that are detected; empty: none.",                        \
			.check = check_services},                                                  \
		{"from", FIELD_STRING, AT(from), 1, LAUNCH_WORD_MAX - 1, 0,                        \
			"The first stage to run, also what it has done already; all as far as "    \
			"there is something to do if left out.",                                   \
			.check = check_stage},                                                     \
		{"timeouts", FIELD_OBJECT, AT(timeouts), 0, 0, 0, "How long stages may take.",     \
			.sub = timeouts_rows, .sub_count = array_len(timeouts_rows)},              \
	{                                                                                          \
		"preview", FIELD_STRING, AT(preview), 1, 8, 0,                                     \
			"Whether the preview has a name of its own (`host`, the default) or a "    \
			"path.",                                                                   \
			.choices = preview_choices                                                 \
	}

static const struct field create_rows[] = {
	{"project", FIELD_STRING, AT(project), 1, 63, 0,
		"The project whose files are launched: its id, or its name."},
	{"sandbox", FIELD_STRING, AT(sandbox), 1, 63, 0,
		"The sandbox that is launched, if it is not the project's."},
	{"template", FIELD_STRING, AT(template_name), 1, SANDBOX_TEMPLATE_MAX - 1, 0,
		"What a sandbox that is made for it starts from."},
	LAUNCH_ROWS,
};
static const struct field in_sandbox_rows[] = {LAUNCH_ROWS};
static const struct field retry_rows[] = {
	{"from", FIELD_STRING, offsetof(struct retry_body, from), 1, LAUNCH_WORD_MAX - 1, 0,
		"The first stage to run again; all if left out.", .check = check_stage},
};

const struct fields launch_create_fields = {create_rows, array_len(create_rows)};
const struct fields launch_sandbox_fields = {in_sandbox_rows, array_len(in_sandbox_rows)};
const struct fields launch_retry_fields = {retry_rows, array_len(retry_rows)};

/* --- answers --- */

static json_t *preview_url(const struct api *api, const struct launch_record *record)
{
	const json_t *port = json_object_get(record->document, "frontend_port");
	const char *path = json_string_value(json_object_get(record->document, "preview_path"));
	char url[API_PREVIEW_URL_MAX];

	if (!port)
		port = json_object_get(record->document, "backend_port");
	if (!port || record->status != LAUNCH_SUCCEEDED)
		return json_null();
	if (!path) {
		api_preview_url(api, record->sandbox_id, (uint16_t)json_integer_value(port), url);
		return json_string(url);
	}
	snprintf(url, sizeof(url), "%s://localhost:%u%s", api->preview_scheme, api->preview_port,
		path);
	return json_string(url);
}

json_t *launch_to_json(const struct api *api, const struct launch_record *record)
{
	const json_t *backend = json_object_get(record->document, "backend_port");
	const json_t *frontend = json_object_get(record->document, "frontend_port");

	return json_pack("{s:s, s:s, s:s?, s:s, s:O, s:o, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:o, "
			 "s:o}",
		"id", record->id, "status", launch_status_name(record->status), "project",
		record->project[0] ? record->project : NULL, "sandbox_id", record->sandbox_id,
		"stages", json_object_get(record->document, "stages"), "preview_url",
		preview_url(api, record), "backend_port", backend, "frontend_port", frontend,
		"detection", json_object_get(record->document, "detection"), "findings",
		json_object_get(record->document, "findings"), "error",
		json_object_get(record->document, "error"), "versions",
		json_object_get(record->document, "versions"), "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "ended_at",
		api_stored_time_to_json(api, record->ended_at_ms));
}

/* Ends the record. */
static void answer(
	struct request *req, const struct api *api, int status, struct launch_record *record)
{
	char path[64];

	snprintf(path, sizeof(path), "/v1/launches/%s", record->id);
	request_set_object(req, record->id);
	if (status == 202)
		request_answer_header(req, "Location", path);
	request_answer_json(req, status, launch_to_json(api, record));
	launch_record_fini(record);
}

static bool wants_stream(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

/* With the launch, or with its stages as they come. */
static int answer_begun(
	struct request *req, struct api *api, struct launch_record *record, struct err *err)
{
	struct owner owner = api_owner(req);
	int r;

	if (!wants_stream(req)) {
		answer(req, api, 202, record);
		return 0;
	}
	request_set_object(req, record->id);
	r = launch_events_answer(req, api, &owner, record->id, err);
	launch_record_fini(record);
	return r;
}

/* --- beginning --- */

/* What the pipeline is told: the body without what says which files and where. */
static json_t *make_input(const json_t *body)
{
	json_t *input = body ? json_deep_copy(body) : json_object();

	json_object_del(input, "project");
	json_object_del(input, "sandbox");
	json_object_del(input, "template");
	return input;
}

static int start(struct request *req, struct api *api, struct sandbox *sandbox, const char *project,
	struct err *err)
{
	struct caller caller = api_caller(req);
	json_auto_t *input = make_input(request_body(req));
	struct launch_record record;
	int r = launches_start(api->launches, &caller,
		&(struct launch_request){.sandbox = sandbox,
			.project = project,
			.input = input,
			.trace = request_trace(req)},
		&record, err);

	return r < 0 ? r : answer_begun(req, api, &record, err);
}

/* The project's sandbox, made if there is none. */
static int start_project(
	struct request *req, struct api *api, const struct launch_body *body, struct err *err)
{
	struct caller caller = api_caller(req);
	struct sandbox_request_result result = {0};
	struct project_record project;
	struct sandbox_spec spec = {.template_name = body->template_name, .waits = CHOICE_NO};
	int r = store_project_get(
		engine_store(api->engine), &caller.owner, body->project, &project, err);

	if (r < 0)
		return r;
	spec.project = project.name;
	if (body->sandbox)
		r = sandbox_get(api->engine, &caller.owner, body->sandbox, &result.sandbox, err);
	else
		r = sandbox_request_ensure(api->engine, &caller, &spec, &result, err);
	if (r == 1)
		r = err_set(err, ERR_UNAVAILABLE, "the image of the sandbox is not there yet");
	if (r == 0) {
		r = start(req, api, result.sandbox, project.id, err);
		sandbox_unref(result.sandbox);
	}
	project_record_fini(&project);
	return r;
}

HANDLER(launches_create)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct launch_body body = {0};
	int r = api_check_ready(api, err);

	fields_clear(&launch_create_fields, &body);
	if (r == 0)
		r = fields_decode(&launch_create_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	if (body.project)
		return start_project(req, api, &body, err);
	if (!body.sandbox)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field project or sandbox is needed");
	r = sandbox_get(api->engine, &caller.owner, body.sandbox, &sandbox, err);
	return r < 0 ? r : start(req, api, sandbox, NULL, err);
}

/* The files are those of the sandbox's project, if that has any, else those in its workspace. */
HANDLER(launches_create_in_sandbox)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct launch_body body = {0};
	struct sandbox_record record;
	struct project_record project = {0};
	struct sandbox *sandbox;
	struct err ignored;
	bool has_files;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&launch_sandbox_fields, &body);
	if (r == 0 && request_body(req))
		r = fields_decode(&launch_sandbox_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	has_files = record.project[0] &&
		    store_project_get(engine_store(api->engine), &caller.owner, record.project,
			    &project, &ignored) == 0 &&
		    project.files > 0;
	r = start(req, api, sandbox, has_files ? project.id : NULL, err);
	project_record_fini(&project);
	sandbox_record_fini(&record);
	return r;
}

HANDLER(launches_retry_one)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct retry_body body = {0};
	struct launch_record record;
	int r = api_check_ready(api, err);

	fields_clear(&launch_retry_fields, &body);
	if (r == 0 && request_body(req))
		r = fields_decode(&launch_retry_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	r = launches_retry(api->launches, &caller, request_param(req, "launch"),
		&(struct launch_retry){.from = body.from, .trace = request_trace(req)}, &record,
		err);
	return r < 0 ? r : answer_begun(req, api, &record, err);
}

/* --- looking --- */

HANDLER(launches_get_one)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct launch_record record;
	int r = launches_get(api->launches, &owner, request_param(req, "launch"), &record, err);

	if (r == 0)
		answer(req, api, 200, &record);
	return r;
}

HANDLER(launches_cancel_one)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct launch_record record;
	int r = launches_cancel(api->launches, &owner, request_param(req, "launch"), &record, err);

	if (r == 0)
		answer(req, api, 200, &record);
	return r;
}

HANDLER(launches_events)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct launch_record record;
	const char *id = request_param(req, "launch");
	int r = launches_get(api->launches, &owner, id, &record, err);

	if (r < 0)
		return r;
	launch_record_fini(&record);
	return launch_events_answer(req, api, &owner, id, err);
}

/* A project of the query, by id or name, as an id; empty if there is none. */
static int read_project(
	const struct request *req, struct api *api, char id[ID_LEN + 1], struct err *err)
{
	struct owner owner = api_owner(req);
	const char *text = request_query(req, "project");
	struct project_record project;
	int r;

	id[0] = '\0';
	if (!text)
		return 0;
	r = store_project_get(api->gate.store, &owner, text, &project, err);
	if (r < 0)
		return r;
	memcpy(id, project.id, sizeof(project.id));
	project_record_fini(&project);
	return 0;
}

/* The later of both that may be said: how many days back, and since when. 0: all. */
static int read_since(
	const struct request *req, struct api *api, int64_t *ret_since_ms, struct err *err)
{
	int64_t days_ms;
	uint64_t days;
	int r = api_query_time(req, api, "since", ret_since_ms, err);

	if (r == 0)
		r = api_query_number(req, "days", 1, DAYS_MAX, 0, &days, err);
	if (r < 0)
		return r;
	days_ms = days == 0 ? 0 : store_clock_ms(api->gate.store) - (int64_t)days * 86400000;
	if (days_ms > *ret_since_ms)
		*ret_since_ms = days_ms;
	return 0;
}

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct launch_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, launch_to_json(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

static int check_filter(const struct store_launch_filter *filter, struct err *err)
{
	enum launch_status ignored;

	if (filter->status && launch_status_parse(filter->status, &ignored) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be running, succeeded, failed or cancelled");
	if (filter->failed_stage && !pipeline_has_stage(filter->failed_stage))
		return err_explain(err, ERR_INVALID, "invalid_parameter",
			"take one of the `stages` of a launch",
			"parameter failed_stage names no stage: %.40s", filter->failed_stage);
	return 0;
}

HANDLER(launches_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {.api = api};
	struct store_launch_filter filter = {.owner = &owner,
		.status = request_query(req, "status"),
		.failed_stage = request_query(req, "failed_stage"),
		.before = request_query(req, "cursor")};
	char project[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	uint64_t limit;
	int r = check_filter(&filter, err);

	if (r == 0)
		r = api_query_number(
			req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);
	if (r == 0)
		r = read_project(req, api, project, err);
	if (r == 0)
		r = api_query_sandbox(req, api, sandbox_id, &filter.sandbox, err);
	if (r == 0)
		r = read_since(req, api, &filter.since_ms, err);
	if (r < 0)
		return r;
	filter.project = project;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	list_page_init(&listing.page, limit);
	r = store_launch_list(api->gate.store, &filter, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "launches", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(launches_get_stats)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	char project[ID_LEN + 1];
	int64_t since_ms;
	json_t *stats;
	int r = read_project(req, api, project, err);

	if (r == 0)
		r = read_since(req, api, &since_ms, err);
	if (r == 0)
		r = launches_stats(api->launches, &owner, project, since_ms, &stats, err);
	if (r == 0)
		request_answer_json(req, 200, stats);
	return r;
}

/* --- projects --- */

struct looked {
	struct file_set set;
	struct detection detection;
};

static int look_at(
	const struct request *req, struct api *api, struct looked *ret_looked, struct err *err)
{
	struct owner owner = api_owner(req);
	int r = api_check_ready(api, err);

	*ret_looked = (struct looked){0};
	if (r == 0)
		r = project_set_open(api->projects, &owner, request_param(req, "project"),
			&ret_looked->set, err);
	if (r == 0)
		r = detection_make(&ret_looked->set, NULL, &ret_looked->detection, err);
	if (r < 0)
		file_set_fini(&ret_looked->set);
	return r;
}

HANDLER(launches_detect)
{
	struct looked looked;
	int r = look_at(req, context, &looked, err);

	if (r < 0)
		return r;
	request_answer_json(req, 200, json_incref(looked.detection.document));
	detection_fini(&looked.detection);
	file_set_fini(&looked.set);
	return 0;
}

HANDLER(launches_validate)
{
	struct validation validation;
	struct looked looked;
	int r = look_at(req, context, &looked, err);

	if (r < 0)
		return r;
	validation_make(&looked.set, &looked.detection, &validation);
	request_answer_json(req, 200,
		json_pack("{s:b, s:O}", "valid", !validation.has_error, "findings",
			validation.findings));
	validation_fini(&validation);
	detection_fini(&looked.detection);
	file_set_fini(&looked.set);
	return 0;
}
