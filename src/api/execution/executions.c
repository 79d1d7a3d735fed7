/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions: code that is run for its result (core/execution/execution.h).
 *
 * How the one who asks for one is answered: execution_answer.h.
 */
#include "api/execution/execution_body.h"
#include "api/execution/execution_events.h"
#include "api/execution/fresh_executions.h"
#include "api/function/function_body.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/process/danger_answer.h"
#include "api/sse.h"
#include "core/context/context.h"
#include "core/execution/function_places.h"
#include "store/work/store_execution.h"
#include "store/work/store_function.h"

#include <errno.h>
#include <stdio.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define END_EVENT_MAX	   (64u << 20)
#define WAIT_MAX_MS	   (24ll * 3600 * 1000)

/* Running */

/* Finds the context that the body names; it has a language of its own. */
static int find_context(const struct api *api, struct sandbox *sandbox, struct execution_body *body,
	struct context **ret_context, struct err *err)
{
	struct execution_spec *spec = &body->spec;
	struct context *found;
	int r;

	*ret_context = NULL;
	if (!body->context)
		return 0;
	r = context_get(api->contexts, sandbox, body->context, &found, err);
	if (r < 0)
		return r;
	if (spec->language && strcmp(spec->language, context_language(found)) != 0) {
		r = err_explain(err, ERR_INVALID, "invalid_field", "leave the language out",
			"field language is %s, but the context runs %s", spec->language,
			context_language(found));
		context_unref(found);
		return r;
	}
	spec->language = context_language(found);
	spec->host = context_host(found);
	*ret_context = found;
	return 0;
}

/* Whether its code may run; what was confirmed once is not asked for again. */
static int ask(struct request *req, struct api *api, struct sandbox *sandbox,
	struct execution_body *body, bool is_again, struct err *err)
{
	return danger_answer_ask_in(req, api, sandbox,
		(struct danger_question){.language = body->spec.language,
			.code = body->spec.code,
			.confirm = body->confirm,
			.is_confirmed = is_again && body->confirm},
		&body->spec.danger, err);
}

HANDLER(executions_run)
{
	struct api *api = context;
	struct execution_body body not_cleared;
	struct execution *execution;
	struct sandbox *sandbox;
	struct context *found;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = execution_body_decode(request_body(req), false, &body, err);
	if (r == 0)
		r = find_context(api, sandbox, &body, &found, err);
	if (r < 0)
		return r;
	r = ask(req, api, sandbox, &body, false, err);
	body.spec.is_told = execution_answer_is_early(req, &body);
	if (r == 0)
		r = execution_start(api->executions, sandbox, &body.spec, &execution, err);
	context_unref(found);
	if (r < 0)
		return r;
	execution_answer(req, api, &body, execution, NULL);
	return 0;
}

/* What was asked for, without how it was to be answered. */
static json_t *request_of(const struct execution_record *record)
{
	json_t *object = json_copy(record->request);

	json_object_del(object, "async");
	json_object_del(object, "on_disconnect");
	return object;
}

static int retry_in_sandbox(struct request *req, struct api *api,
	const struct execution_record *record, bool is_async, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	json_auto_t *object = request_of(record);
	struct execution_body body not_cleared;
	struct execution *execution;
	int r = sandbox_get(api->engine, &record->owner, record->sandbox_id, &sandbox, err);

	if (r == 0)
		r = execution_body_decode(object, false, &body, err);
	if (r == 0)
		r = ask(req, api, sandbox, &body, true, err);
	if (r < 0)
		return r;
	body.is_async = is_async;
	body.spec.is_told = execution_answer_is_early(req, &body);
	r = execution_start(api->executions, sandbox, &body.spec, &execution, err);
	if (r < 0)
		return r;
	execution_answer(req, api, &body, execution, NULL);
	return 0;
}

/* A call of a function again: it is one of its calls at once, and finds an interpreter with its imports, as long as the
 * function has this version. */
static int retry_call(const struct api *api, const struct execution_record *record,
	struct function_record *function, struct fresh_execution *again, struct err *err)
{
	int r = store_function_get(
		api->gate.store, &record->owner, record->function, record->version, function, err);

	if (r < 0 && r != -ENOENT)
		return r;
	again->imports = json_object_get(function->spec, "imports");
	again->function = record->function;
	again->version = record->version;
	return function_place_take(executions_places(api->executions), &record->owner,
		record->function, r == 0 ? function_body_concurrency(function) : 0, &again->place,
		err);
}

static int retry_fresh(struct request *req, struct api *api, const struct execution_record *record,
	struct fresh_execution *again, struct err *err)
{
	struct function_record function = {0};
	int r = record->function[0] ? retry_call(api, record, &function, again, err) : 0;

	if (r == 0) {
		again->object = request_of(record);
		again->is_again = true;
		r = fresh_executions_start(req, api, again, err);
	}
	function_record_fini(&function);
	return r;
}

HANDLER(executions_retry)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_record record;
	struct execution *running;
	struct fresh_execution again = {0};
	int r = api_query_boolean(req, "async", &again.is_async, err);

	if (r == 0)
		r = execution_get(api->executions, &owner, request_param(req, "execution"),
			&running, &record, err);
	if (r < 0)
		return r;
	execution_unref(running);
	if (!record.request || record.context_id[0]) {
		r = err_explain(err, ERR_CONFLICT, "not_retriable", "ask for it anew",
			"execution %s ran in a context, or was asked for with more than is kept",
			record.id);
	} else if (!record.is_fresh) {
		r = retry_in_sandbox(req, api, &record, again.is_async, err);
	} else {
		r = retry_fresh(req, api, &record, &again, err);
	}
	execution_record_fini(&record);
	return r;
}

/* Looking */

HANDLER(executions_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_record record;
	struct execution *execution;
	uint64_t wait_ms;
	int r = api_query_number(req, "wait_ms", 1, WAIT_MAX_MS, 0, &wait_ms, err);

	if (r == 0)
		r = execution_get(api->executions, &owner, request_param(req, "execution"),
			&execution, &record, err);
	if (r < 0)
		return r;
	if (execution && record.ended_at_ms == 0 && wait_ms > 0) {
		execution_answer_later(req, api, execution, wait_ms, false);
	} else {
		request_answer_exact_json(req, 200, execution_body_encode(api, &record));
		execution_unref(execution);
	}
	execution_record_fini(&record);
	return 0;
}

/* Of one that is over only the end is told: all of its output is in that. */
static void answer_end(struct request *req, const struct execution_record *record)
{
	struct buf out = BUF_INIT(END_EVENT_MAX);
	json_t *data = execution_body_encode(request_context(req), record);
	auto_free char *text = NULL;

	sse_put_event(&out, 0, "end", data);
	json_decref(data);
	text = buf_take_str(&out);
	request_answer_text(req, 200, "text/event-stream", text);
}

HANDLER(executions_events)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_events_spec stream = {.api = api};
	struct execution_record record;
	bool given;
	int r = api_query_from(req, &stream.from, &given, err);

	if (r == 0)
		r = execution_get(api->executions, &owner, request_param(req, "execution"),
			&stream.execution, &record, err);
	if (r < 0)
		return r;
	if (stream.execution)
		execution_events_answer(req, &stream);
	else
		answer_end(req, &record);
	execution_unref(stream.execution);
	execution_record_fini(&record);
	return 0;
}

HANDLER(executions_cancel)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_record record;
	struct execution *execution;
	int r = execution_get(
		api->executions, &owner, request_param(req, "execution"), &execution, &record, err);

	if (r < 0)
		return r;
	if (execution) {
		execution_cancel(execution);
		execution_answer_later(req, api, execution, 0, false);
	} else {
		request_answer_exact_json(req, 200, execution_body_encode(api, &record));
	}
	execution_record_fini(&record);
	return 0;
}

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct execution_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, execution_body_encode(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

static int check_filter(const struct store_execution_filter *filter, struct err *err)
{
	enum execution_status ignored;

	if (filter->status && execution_status_parse(filter->status, &ignored) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be running, succeeded, failed, timeout, cancelled "
			"or lost");
	return 0;
}

static int read_times(const struct request *req, const struct api *api,
	struct store_execution_filter *filter, struct err *err)
{
	int r = api_query_time(req, api, "since", &filter->since_ms, err);

	return r < 0 ? r : api_query_time(req, api, "until", &filter->until_ms, err);
}

static void add_stats(const struct store_execution_stats *stats, void *arg)
{
	json_array_append_new(arg,
		json_pack("{s:o, s:o, s:I, s:I, s:f, s:f}", "sandbox_id",
			stats->sandbox[0] ? json_string(stats->sandbox) : json_null(), "function",
			stats->function[0] ? json_string(stats->function) : json_null(), "count",
			(json_int_t)stats->count, "failures", (json_int_t)stats->failed, "p50_ms",
			(double)stats->p50_us / 1000, "p95_ms", (double)stats->p95_us / 1000));
}

HANDLER(executions_stats)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct store_execution_filter filter = {.owner = &owner,
		.function = request_query(req, "function"),
		.limit = LIST_LIMIT_MAX};
	char sandbox_id[ID_LEN + 1];
	json_t *list = json_array();
	int r = read_times(req, api, &filter, err);

	if (r == 0)
		r = api_query_sandbox(req, api, sandbox_id, &filter.sandbox, err);
	if (r == 0)
		executions_settle(api->executions, api->engine);
	if (r == 0)
		r = store_execution_stats(engine_store(api->engine), &filter, add_stats, list, err);
	if (r == 0)
		request_answer_json(req, 200, json_pack("{s:O}", "stats", list));
	json_decref(list);
	return r;
}

HANDLER(executions_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {.api = api};
	struct store_execution_filter filter = {.owner = &owner,
		.status = request_query(req, "status"),
		.language = request_query(req, "language"),
		.function = request_query(req, "function"),
		.before = request_query(req, "cursor")};
	char sandbox_id[ID_LEN + 1];
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r == 0)
		r = check_filter(&filter, err);
	if (r == 0)
		r = api_query_sandbox(req, api, sandbox_id, &filter.sandbox, err);
	if (r == 0)
		r = read_times(req, api, &filter, err);
	if (r < 0)
		return r;
	executions_settle(api->executions, api->engine);
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	list_page_init(&listing.page, limit);
	r = store_execution_list(engine_store(api->engine), &filter, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "executions", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}
