/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions: code that is kept under a name, in versions, and called by it. A call is an execution in a fresh sandbox
 * (api/execution/fresh_executions.h) whose answer is the result alone.
 */
#include "api/execution/fresh_executions.h"
#include "api/function/function_body.h"
#include "api/function/http_event.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "base/number.h"
#include "core/execution/execution.h"
#include "core/execution/function_places.h"
#include "store/work/store_function.h"

#include <stdio.h>
#include <strings.h>

#define EXECUTION_HEADER "Sandlot-Execution"

static int read_name(const struct request *req, const char **ret_name, struct err *err)
{
	*ret_name = request_param(req, "function");
	if (model_name_is_valid(*ret_name))
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_name", NULL,
		"the name of a function is 1 to 63 letters, digits, . _ - with a letter or digit "
		"first");
}

/* The one that the path names, in the version that the query names. */
static int find(const struct request *req, const struct api *api,
	struct function_record *ret_record, struct err *err)
{
	const char *text = request_query(req, "version"), *name;
	struct owner owner = api_owner(req);
	uint64_t version = 0;
	int r = read_name(req, &name, err);

	if (r == 0 && text && strcmp(text, "$LATEST") != 0 &&
		number_parse(text, 1, UINT32_MAX, &version) < 0)
		r = err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter version must be a number from 1, or $LATEST");
	if (r < 0)
		return r;
	return store_function_get(
		api->gate.store, &owner, name, (uint32_t)version, ret_record, err);
}

HANDLER(functions_put)
{
	struct api *api = context;
	struct function_record record = {.owner = api_owner(req)};
	const char *name;
	int r = read_name(req, &name, err);

	if (r == 0)
		r = function_body_decode(request_body(req), &record.spec, err);
	if (r < 0)
		return r;
	snprintf(record.name, sizeof(record.name), "%s", name);
	r = store_function_put(api->gate.store, &record, err);
	if (r == 0) {
		fresh_executions_expect(
			api, &record.owner, record.spec, json_object_get(record.spec, "imports"));
		request_answer_json(req, 200, function_body_encode(api, &record, true));
	}
	function_record_fini(&record);
	return r;
}

HANDLER(functions_get)
{
	struct api *api = context;
	struct function_record record;
	int r = find(req, api, &record, err);

	if (r < 0)
		return r;
	request_answer_json(req, 200, function_body_encode(api, &record, true));
	function_record_fini(&record);
	return 0;
}

struct listing {
	const struct api *api;
	json_t *list;
};

static bool list_one(const struct function_record *record, void *arg)
{
	struct listing *listing = arg;

	json_array_append_new(listing->list, function_body_encode(listing->api, record, false));
	return true;
}

HANDLER(functions_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {api, json_array()};
	int r = store_function_list(api->gate.store, &owner, "", list_one, &listing, err);

	if (r == 0)
		request_answer_json(
			req, 200, list_page_whole("functions", json_incref(listing.list)));
	json_decref(listing.list);
	return r;
}

HANDLER(functions_versions)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {api, json_array()};
	const char *name;
	int r = read_name(req, &name, err);

	if (r == 0)
		r = store_function_versions(api->gate.store, &owner, name, list_one, &listing, err);
	if (r == 0 && json_array_size(listing.list) == 0)
		r = function_not_found(name, 0, err);
	if (r == 0)
		request_answer_json(
			req, 200, list_page_whole("functions", json_incref(listing.list)));
	json_decref(listing.list);
	return r;
}

HANDLER(functions_delete)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *name;
	int r = read_name(req, &name, err);

	if (r == 0)
		r = store_function_delete(api->gate.store, &owner, name, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

/* --- calls --- */

/* Why there is no result. */
static void explain(const struct execution_record *record, struct err *err)
{
	const json_t *error = json_object_get(record->outcome, "error");
	const char *type = json_string_value(json_object_get(error, "type"));
	const char *message = json_string_value(json_object_get(error, "message"));

	if (record->status == EXECUTION_TIMEOUT) {
		err_explain(err, ERR_TIMEOUT, "function_timeout",
			"put the function with a longer timeout_ms",
			"the function %s ran for longer than its timeout of %llu ms",
			record->function, (unsigned long long)record->timeout_ms);
		return;
	}
	err_explain(err, ERR_BAD_GATEWAY, "function_failed",
		"GET /v1/executions/{execution} has its output and its traceback; the header "
		"Sandlot-Execution names it",
		"the function %s failed: %.80s: %.160s", record->function, type ? type : "Error",
		message ? message : "");
}

static void answer(
	struct request *req, const struct api *api, const struct execution_record *record)
{
	json_t *result = json_object_get(record->outcome, "result");
	struct err err;

	(void)api;
	request_answer_header(req, EXECUTION_HEADER, record->id);
	if (record->status == EXECUTION_SUCCEEDED) {
		request_answer_exact_json(req, 200, result ? json_incref(result) : json_null());
		return;
	}
	explain(record, &err);
	request_answer_error(req, &err);
}

static void answer_version(struct request *req, const struct api *api,
	const struct execution_record *record, enum http_event_version version)
{
	const json_t *result = json_object_get(record->outcome, "result");
	struct err err;

	if (record->status != EXECUTION_SUCCEEDED) {
		answer(req, api, record);
		return;
	}
	request_answer_header(req, EXECUTION_HEADER, record->id);
	if (http_event_answer(req, result, version, &err) < 0)
		request_answer_error(req, &err);
}

static void answer_http_1(
	struct request *req, const struct api *api, const struct execution_record *record)
{
	answer_version(req, api, record, HTTP_EVENT_1);
}

static void answer_http_2(
	struct request *req, const struct api *api, const struct execution_record *record)
{
	answer_version(req, api, record, HTTP_EVENT_2);
}

/* What `format` may be; the first is that of a request that says nothing. */
static const struct call_format {
	const char *name;
	bool is_http;
	enum http_event_version version;
	void (*finish)(
		struct request *req, const struct api *api, const struct execution_record *record);
} formats[] = {
	{.name = "json", .finish = answer},
	{"http", true, HTTP_EVENT_1, answer_http_1},
	{"http-2.0", true, HTTP_EVENT_2, answer_http_2},
};

static const struct call_format *find_format(const char *name)
{
	for (size_t i = 0; name && i < array_len(formats); i++) {
		if (strcmp(name, formats[i].name) == 0)
			return &formats[i];
	}
	return name ? NULL : &formats[0];
}

/* The event: what was sent, or all of the request. */
static int read_event(const struct request *req, const struct call_format **ret_format,
	json_t **ret_event, struct err *err)
{
	const struct call_format *format = find_format(request_query(req, "format"));
	json_auto_t *query = request_query_to_json(req);
	const char *name;
	json_t *value;
	size_t len;
	int r;

	if (!format)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter format must be json, http or http-2.0");
	*ret_format = format;
	r = http_event_check(query, err);
	if (r < 0)
		return r;
	if (format->is_http) {
		*ret_event = http_event_make(req, format->version);
		return 0;
	}
	json_object_foreach(query, name, value)
	{
		if (strcmp(name, "format") != 0 && strcmp(name, "version") != 0 &&
			strcmp(name, "async") != 0)
			return err_explain(err, ERR_INVALID, "invalid_parameter",
				"with format=http it is a parameter of the event",
				"there is no parameter %.64s", name);
	}
	(void)request_body_bytes(req, &len);
	if (len > 0)
		return request_body_value(req, ret_event, err);
	*ret_event = json_object();
	return 0;
}

HANDLER(functions_invoke)
{
	struct api *api = context;
	struct fresh_execution call = {0};
	struct function_record record;
	struct owner owner = api_owner(req);
	json_t *event = NULL;
	const struct call_format *format = NULL;
	int r = api_query_boolean(req, "async", &call.is_async, err);

	if (r == 0)
		r = find(req, api, &record, err);
	if (r < 0)
		return r;
	r = read_event(req, &format, &event, err);
	if (r == 0)
		r = function_place_take(executions_places(api->executions), &owner, record.name,
			function_body_concurrency(&record), &call.place, err);
	if (r == 0) {
		call.object = function_body_call(&record, take_ptr(&event));
		call.function = record.name;
		call.version = record.version;
		call.imports = json_object_get(record.spec, "imports");
		call.finish = format->finish;
		r = fresh_executions_start(req, api, &call, err);
	}
	json_decref(event);
	function_record_fini(&record);
	return r;
}
