/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handlers.h"
#include "api/idempotency.h"
#include "api/jobs.h"
#include "api/list_page.h"
#include "api/sandbox/sandbox_body.h"
#include "api/sandbox/start_body.h"
#include "core/sandbox/limit_warning.h"
#include "core/sandbox/sandbox_request.h"
#include "core/sandbox/sandbox_stats.h"
#include "store/work/store_project.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

static json_t *warnings_about(const struct resources *resources)
{
	char texts[LIMIT_WARNING_MAX][LIMIT_WARNING_LEN];
	size_t count = limit_warning_list(resources, texts);
	json_t *warnings = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(warnings, json_string(texts[i]));
	return warnings;
}

static json_t *encode(const struct api *api, struct sandbox *sandbox)
{
	struct sandbox_record record;
	char awake[SANDBOX_AWAKE_MAX];
	struct walls walls;
	json_t *body, *warnings;

	sandbox_read(sandbox, &record);
	warnings = warnings_about(&record.resources);
	body = sandbox_to_json(api, &record);
	json_object_set_new(body, "start", start_body_encode(record.start, sandbox));
	sandbox_record_fini(&record);
	if (json_array_size(warnings) > 0)
		json_object_set(body, "warnings", warnings);
	json_decref(warnings);
	json_object_set_new(body, "ready", json_boolean(sandbox_is_ready(sandbox)));
	json_object_set_new(body, "awake_because",
		sandbox_explain_awake(sandbox, awake) ? json_string(awake) : json_null());
	json_object_set_new(body, "walls",
		sandbox_read_walls(sandbox, &walls) ? sandbox_walls_to_json(&walls) : json_null());
	return body;
}

static void answer_sandbox(
	struct request *req, const struct api *api, int status, struct sandbox *sandbox)
{
	request_set_object(req, sandbox_id(sandbox));
	request_answer_json(req, status, encode(api, sandbox));
}

/* --- create and ensure --- */

/* One that is to be made, which may have to wait for its image; kept by its request. */
struct asked {
	struct api *api;
	struct sandbox_body body;
	bool is_ensure;
	char id[ID_LEN + 1];
	char project[MODEL_NAME_MAX];	 /* that the path names; empty: none */
	struct idempotency *idempotency; /* NULL: none, or it has ended */
};

static int ask_again(struct request *req, void *arg, int end, struct err *err);

static int make(struct request *req, struct asked *asked, struct err *err)
{
	struct sandbox_request_result result = {.is_created = !asked->is_ensure};
	struct caller caller = api_caller(req);
	struct engine *engine = asked->api->engine;
	json_t *made;
	int status, r = asked->is_ensure ? sandbox_request_ensure(
						   engine, &caller, &asked->body.spec, &result, err)
					 : sandbox_request_create(engine, &caller,
						   &asked->body.spec, &result, err);

	if (r < 0)
		return r;
	if (r == 1) {
		jobs_await(req, asked->api, result.job, ask_again, asked);
		return 0;
	}
	made = encode(asked->api, result.sandbox);
	idempotency_end(take_ptr(&asked->idempotency), made, NULL);
	request_set_object(req, sandbox_id(result.sandbox));
	status = idempotency_status(made);
	request_answer_json(req, status == 201 && !result.is_created ? 200 : status, made);
	sandbox_unref(result.sandbox);
	return 0;
}

static int try(struct request *req, struct asked *asked, int r, struct err *err)
{
	if (r == 0)
		r = make(req, asked, err);
	if (r < 0)
		idempotency_end(take_ptr(&asked->idempotency), NULL, err);
	return r;
}

static int ask_again(struct request *req, void *arg, int end, struct err *err)
{
	return try(req, arg, end, err);
}

/* A create with an Idempotency-Key has its id set aside before anything is made. */
static int begin(struct request *req, struct asked *asked, struct err *err)
{
	struct sandbox_spec *spec = &asked->body.spec;
	int r;

	if (asked->is_ensure)
		return 0;
	snprintf(asked->id, sizeof(asked->id), "%s", spec->id ? spec->id : "");
	if (!spec->id)
		spec->reserved_by = request_header(req, "Idempotency-Key");
	r = idempotency_begin(asked->api, req, asked->id, &asked->idempotency, err);
	spec->id = asked->id[0] ? asked->id : NULL;
	spec->tried_at_ms = idempotency_resumed_ms(asked->idempotency);
	return r;
}

/* The project that the path names goes into the body's place, which may say the same. */
static int read_project(struct request *req, struct asked *asked, struct err *err)
{
	struct owner owner = api_owner(req);
	const char *id = request_param(req, "project"), *said = asked->body.spec.project;
	struct project_record record;
	int r;

	if (!id)
		return 0;
	r = store_project_get(engine_store(asked->api->engine), &owner, id, &record, err);
	if (r < 0)
		return r;
	project_record_fini(&record);
	if (said && strcmp(said, record.name) != 0 && strcmp(said, record.id) != 0)
		return err_explain(err, ERR_INVALID, "invalid_field", "leave it out",
			"field project is another one than that of the path");
	memcpy(asked->project, record.name, sizeof(asked->project));
	asked->body.spec.project = asked->project;
	return 0;
}

static int ask(struct request *req, struct api *api, bool is_ensure, struct err *err)
{
	struct asked *asked = mem_new(sizeof(*asked));
	int r;

	request_keep(req, asked, free);
	asked->api = api;
	asked->is_ensure = is_ensure;
	if ((r = api_check_ready(api, err)) < 0 ||
		(r = sandbox_body_decode(request_body(req), &asked->body, err)) < 0 ||
		(r = read_project(req, asked, err)) < 0 || (r = begin(req, asked, err)) < 0)
		return r;
	return r == 1 ? 0 : try(req, asked, 0, err);
}

HANDLER(sandboxes_create)
{
	return ask(req, context, false, err);
}

HANDLER(sandboxes_create_in_project)
{
	return ask(req, context, false, err);
}

HANDLER(sandboxes_ensure)
{
	return ask(req, context, true, err);
}

/* --- lists --- */

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

/* Of one that is up also how its start commands fare and which walls it has, as when it is looked at alone. */
static json_t *encode_listed(const struct api *api, const struct sandbox_record *record)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err ignored;

	if ((record->status == SANDBOX_RUNNING || record->status == SANDBOX_PAUSED) &&
		sandbox_get(api->engine, &record->owner, record->id, &sandbox, &ignored) == 0)
		return encode(api, sandbox);
	return sandbox_to_json(api, record);
}

static bool list_one(const struct sandbox_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, encode_listed(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

/* "k=v" of the query, cut in two in place. */
static int read_label(const struct request *req, char *text, size_t size,
	struct text_pair *ret_label, struct err *err)
{
	const char *label = request_query(req, "label");
	char *equals;

	if (!label)
		return 0;
	snprintf(text, size, "%s", label);
	equals = strchr(text, '=');
	if (!equals || strlen(label) >= size)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter label must be a name, = and a value");
	*equals = '\0';
	*ret_label = (struct text_pair){text, equals + 1};
	return 0;
}

static bool list_left(const struct workspace_record *record, void *arg)
{
	struct listing *listing = arg;
	json_t *left = json_pack("{s:s, s:o, s:o, s:o, s:o}", "id", record->id, "name",
		record->name[0] ? json_string(record->name) : json_null(), "created_at",
		api_stored_time_to_json(listing->api, record->created_at_ms), "removed_at",
		api_stored_time_to_json(listing->api, record->removed_at_ms), "disk_bytes",
		record->disk_bytes < 0 ? json_null() : json_integer(record->disk_bytes));

	if (!list_page_add(&listing->page, left))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

HANDLER(sandboxes_list)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct listing listing = {.api = api};
	struct sandbox_filter filter = {.status = request_query(req, "status"),
		.template_name = request_query(req, "template"),
		.project = request_query(req, "project"),
		.session = request_query(req, "session"),
		.after = request_query(req, "cursor")};
	bool removed = false;
	char label[512];
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = read_label(req, label, sizeof(label), &filter.label, err)) < 0 ||
		(request_query(req, "removed") &&
			(r = api_query_boolean(req, "removed", &removed, err)) < 0))
		return r;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	list_page_init(&listing.page, limit);
	r = removed ? sandbox_request_list_removed(
			      api->engine, &caller, &filter, list_left, &listing, err)
		    : sandbox_request_list(api->engine, &caller, &filter, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "sandboxes", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

/* --- one --- */

HANDLER(sandboxes_get)
{
	struct api *api = context;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		answer_sandbox(req, api, 200, sandbox);
	return r;
}

HANDLER(sandboxes_patch)
{
	struct api *api = context;
	auto_free struct sandbox_change_body *body = mem_new(sizeof(*body));
	struct caller caller = api_caller(req);
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = sandbox_body_decode_change(request_body(req), body, err)) < 0 ||
		(r = sandbox_request_change(sandbox, &caller, &body->change, err)) < 0)
		return r;
	answer_sandbox(req, api, 200, sandbox);
	return 0;
}

/* A verb on the sandbox of the path, answered with what it is then. */
static int apply(struct request *req, struct api *api,
	int (*verb)(struct sandbox *sandbox, struct err *err), struct err *err)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = verb(sandbox, err);
	if (r == 0)
		answer_sandbox(req, api, 200, sandbox);
	return r;
}

static int stop_by_operator(struct sandbox *sandbox, struct err *err)
{
	return sandbox_stop(sandbox, END_OPERATOR, err);
}

HANDLER(sandboxes_start)
{
	return apply(req, context, sandbox_start, err);
}

HANDLER(sandboxes_stop)
{
	return apply(req, context, stop_by_operator, err);
}

HANDLER(sandboxes_pause)
{
	return apply(req, context, sandbox_pause, err);
}

HANDLER(sandboxes_resume)
{
	return apply(req, context, sandbox_resume, err);
}

HANDLER(sandboxes_reset)
{
	return apply(req, context, sandbox_reset, err);
}

HANDLER(sandboxes_delete)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = sandbox_delete(sandbox, END_OPERATOR, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

HANDLER(sandboxes_purge)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	int r = api_check_ready(api, err);

	if (r == 0)
		r = sandbox_purge(api->engine, &owner, request_param(req, "id"), err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

/* --- figures --- */

static json_t *stats_to_json(const struct sandbox_stats *stats)
{
	json_t *files_limit = stats->disk_files_limit
				      ? json_integer((json_int_t)stats->disk_files_limit)
				      : json_null();

	return json_pack("{s:{s:f, s:f}, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:o, s:b, s:I},"
			 " s:{s:I, s:I}, s:{s:I, s:I}}",
		"cpu", "usage_ms", (double)stats->cpu_us / 1000, "limit",
		(double)stats->limits.cpu_millis / 1000, "memory", "current_bytes",
		(json_int_t)stats->memory_bytes, "peak_bytes", (json_int_t)stats->memory_peak_bytes,
		"limit_bytes", (json_int_t)stats->limits.memory_bytes, "disk", "used_bytes",
		(json_int_t)stats->disk_bytes, "files", (json_int_t)stats->disk_files,
		"limit_bytes", (json_int_t)stats->limits.disk_bytes, "limit_files", files_limit,
		"enforced", stats->disk_files_limit > 0, "output_bytes",
		(json_int_t)stats->output_bytes, "pids", "current", (json_int_t)stats->pids,
		"limit", (json_int_t)stats->limits.pids, "network", "rx_bytes",
		(json_int_t)stats->rx_bytes, "tx_bytes", (json_int_t)stats->tx_bytes);
}

HANDLER(sandboxes_stats)
{
	struct sandbox_stats stats;
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = sandbox_stats_read(sandbox, &stats, err)) < 0)
		return r;
	request_answer_json(req, 200, stats_to_json(&stats));
	return 0;
}

static json_t *point_to_json(const struct stats_point *point)
{
	return json_pack("{s:o, s:f, s:I, s:I, s:f, s:f}", "at",
		api_time_to_json((int64_t)point->at_s * 1000), "cpu",
		round((double)point->cpu * 1000) / 1000, "memory_bytes", (json_int_t)point->memory,
		"disk_bytes", (json_int_t)point->disk, "rx_bytes_per_second",
		round((double)point->rx), "tx_bytes_per_second", round((double)point->tx));
}

HANDLER(sandboxes_stats_history)
{
	const char *window = request_query(req, "window");
	bool is_coarse = window && strcmp(window, "day") == 0;
	struct stats_point points[STATS_FINE];
	struct sandbox *sandbox;
	json_t *list;
	size_t count;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0 && window && !is_coarse && strcmp(window, "hour") != 0)
		r = err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter window must be hour or day");
	if (r < 0)
		return r;
	list = json_array();
	count = sandbox_stats_history(sandbox, is_coarse, 0, points, array_len(points));
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, point_to_json(&points[i]));
	request_answer_json(req, 200,
		json_pack("{s:i, s:o}", "step_s", is_coarse ? STATS_COARSE_S : STATS_FINE_S,
			"points", list));
	return 0;
}
