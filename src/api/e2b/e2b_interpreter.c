/* SPDX-License-Identifier: Apache-2.0 */
/*
 * E2B's code interpreter: contexts and executions of the API. Code that names no context runs in the sandbox's own one of
 * its language, which is made when it is first wanted, and is known by never being idle for too long.
 */
#include "api/e2b/e2b_call.h"
#include "base/exact_digits.h"
#include "core/context/context.h"
#include "core/execution/execution_spec.h"

#include <stdio.h>
#include <string.h>

#define INTERPRETER  "/data/{id}/interpreter"
#define CONTEXTS     "/v1/sandboxes/%s/contexts"
#define LINES	     "application/x-ndjson"
#define TIMEOUT_MS   3600000
#define HOME	     "/workspace"
#define CONTEXT_IDLE 86400 /* of those that a client makes */

static const char *language_of(const struct e2b_call *call)
{
	static const struct {
		const char *name, *ours;
	} others[] = {{"js", "javascript"}, {"ts", "typescript"}, {"bash", "shell"}};
	const char *name = e2b_call_text(call, "language");

	if (!name || !name[0])
		return "python";
	for (size_t i = 0; i < array_len(others); i++) {
		if (strcmp(others[i].name, name) == 0)
			return others[i].ours;
	}
	return name;
}

/* Clients take the text of an error as it is. */
static bool answer_error(struct request *req, int status, json_t *body)
{
	const char *message =
		json_string_value(json_object_get(json_object_get(body, "error"), "message"));

	if (status < 300)
		return false;
	request_answer_text(req, status, "text/plain", message ? message : "");
	json_decref(body);
	return true;
}

/* --- contexts --- */

static json_t *describe(const json_t *context)
{
	json_t *cwd = json_object_get(context, "cwd");

	return json_pack("{s:O, s:O, s:o}", "id", json_object_get(context, "id"), "language",
		json_object_get(context, "language"), "cwd",
		json_is_string(cwd) ? json_incref(cwd) : json_string(HOME));
}

static int ask_create(struct request *req, struct e2b_call *call, struct err *err)
{
	const char *cwd = e2b_call_text(call, "cwd");
	json_t *body = json_pack(
		"{s:s, s:i}", "language", language_of(call), "idle_timeout_s", CONTEXT_IDLE);

	/* What clients name where nothing was named. */
	if (cwd && strcmp(cwd, "/home/user") != 0)
		json_object_set_new(body, "cwd", json_string(cwd));
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "POST", .body = body},
		err, CONTEXTS, call->id);
}

static void answer_context(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (answer_error(req, status, body))
		return;
	request_answer_json(req, 200, describe(body));
	json_decref(body);
}

static int ask_list(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(
		req, call, &(struct e2b_request){.method = "GET"}, err, CONTEXTS, call->id);
}

static void answer_list(struct request *req, void *arg, int status, json_t *body)
{
	json_t *list, *one;
	size_t i;

	(void)arg;
	if (answer_error(req, status, body))
		return;
	list = json_array();
	json_array_foreach(json_object_get(body, "contexts"), i, one)
	{
		json_array_append_new(list, describe(one));
	}
	request_answer_json(req, 200, list);
	json_decref(body);
}

static int ask_delete(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "DELETE"}, err,
		CONTEXTS "/%s", call->id, call->part);
}

static int ask_restart(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "POST"}, err,
		CONTEXTS "/%s/restart", call->id, call->part);
}

static void answer_done(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (answer_error(req, status, body))
		return;
	json_decref(body);
	request_answer_json(req, 200, json_object());
}

/* --- code --- */

struct search {
	const char *language;
	char id[ID_LEN + 1];
};

static void consider(const struct context_view *view, void *arg)
{
	struct search *search = arg;

	if (!search->id[0] && view->record.idle_timeout_s == 0 &&
		strcmp(view->record.language, search->language) == 0)
		memcpy(search->id, view->record.id, sizeof(search->id));
}

/* The context that code of a language runs in where it names none: one that has ended begins anew. */
static int find_own_context(
	struct api *api, struct sandbox *sandbox, struct search *search, struct err *err)
{
	struct context_spec spec = {.language = search->language};
	struct context_view view;
	struct context *found;
	bool has_ended;
	int r = contexts_list(api->contexts, sandbox, consider, search, err);

	if (r < 0)
		return r;
	if (!search->id[0]) {
		r = context_create(api->contexts, sandbox, &spec, &found, err);
		if (r < 0)
			return r;
		snprintf(search->id, sizeof(search->id), "%s", context_id(found));
		context_unref(found);
		return 0;
	}
	r = context_get(api->contexts, sandbox, search->id, &found, err);
	if (r < 0)
		return r;
	context_read(found, &view);
	has_ended = strcmp(view.status, "ended") == 0;
	context_record_fini(&view.record);
	if (has_ended)
		r = context_restart(found, err);
	context_unref(found);
	return r;
}

static int handle_execute(struct request *req, void *context, struct err *err)
{
	const struct e2b_call *call = request_redirect_arg(req);
	struct search search = {.language = language_of(call)};
	json_t *body = (json_t *)request_body(req); /* made for this request by ask_execute */
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r < 0)
		return r;
	if (!json_object_get(body, "context_id") && strcmp(search.language, "shell") != 0) {
		r = find_own_context(context, sandbox, &search, err);
		if (r < 0)
			return r;
		json_object_set_new(body, "context_id", json_string(search.id));
		json_object_del(body, "language");
	}
	return executions_run(req, context, err);
}

static int ask_execute(struct request *req, struct e2b_call *call, struct err *err)
{
	const char *context = e2b_call_text(call, "context_id");
	json_t *env = json_object_get(call->body, "env_vars");
	json_t *code = json_object_get(call->body, "code"), *body;

	if (!json_is_string(code))
		return err_set(err, ERR_INVALID, "code must be a text");
	body = json_pack("{s:O, s:i}", "code", code, "timeout_ms", TIMEOUT_MS);
	if (context)
		json_object_set_new(body, "context_id", json_string(context));
	else
		json_object_set_new(body, "language", json_string(language_of(call)));
	if (json_object_size(env) > 0)
		json_object_set(body, "env", env);
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST",
			.body = body,
			.handle = handle_execute,
			.accept = "text/event-stream"},
		err, "/v1/sandboxes/%s/executions", call->id);
}

static void answer_run(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (!answer_error(req, status, body))
		answer_error(req, 500, body);
}

/* All of it is ASCII, since clients decode each piece that the network brings alone. */
static void put_line(struct buf *out, json_t *line)
{
	auto_free char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(line);
	buf_append_str(out, text ? text : "{}");
	buf_append(out, "\n", 1);
}

/* By the type of its content. */
static const struct {
	const char *type, *name;
} forms[] = {
	{"text/plain", "text"},
	{"text/html", "html"},
	{"text/markdown", "markdown"},
	{"image/svg+xml", "svg"},
	{"image/png", "png"},
	{"image/jpeg", "jpeg"},
	{"application/pdf", "pdf"},
	{"text/latex", "latex"},
	{"application/json", "json"},
	{"application/javascript", "javascript"},
};

static void put_result(struct buf *out, const json_t *shown, bool is_main)
{
	json_t *line = json_pack("{s:s, s:b}", "type", "result", "is_main_result", is_main);

	for (size_t i = 0; i < array_len(forms); i++) {
		json_t *form = json_object_get(shown, forms[i].type);

		if (form)
			json_object_set(line, forms[i].name, form);
	}
	put_line(out, line);
}

/* What code is worth, as Python writes it. */
static void put_value(struct buf *out, const json_t *value)
{
	auto_free char *text =
		json_is_string(value)
			? mem_strdup(json_string_value(value))
			: json_dumps(value,
				  JSON_ENCODE_ANY | JSON_REAL_PRECISION(exact_digits(value)));
	json_t *line = json_pack(
		"{s:s, s:b, s:s}", "type", "result", "is_main_result", 1, "text", text ? text : "");

	if (json_is_object(value) || json_is_array(value))
		json_object_set(line, "json", (json_t *)value);
	put_line(out, line);
}

static void put_error(struct buf *out, const json_t *error)
{
	const char *type = json_string_value(json_object_get(error, "type"));
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *traceback = json_string_value(json_object_get(error, "traceback"));

	put_line(out,
		json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", type ? type : "Error",
			"value", message ? message : "", "traceback", traceback ? traceback : ""));
}

static void tell_event(void *arg, const char *event, const json_t *data, struct buf *out)
{
	struct e2b_call *call = arg;
	json_t *text;

	if (!event)
		return;
	if (!event[0]) {
		put_line(out, json_pack("{s:s}", "type", "keepalive"));
	} else if (strcmp(event, "stdout") == 0 || strcmp(event, "stderr") == 0) {
		text = json_object_get(data, "data");
		put_line(out, json_pack("{s:s, s:o}", "type", event, "text",
				      text ? json_incref(text) : json_string("\xef\xbf\xbd")));
	} else if (strcmp(event, "result") == 0) {
		const json_t *shown = json_object_get(data, "display");

		if (shown)
			put_result(out, shown, false);
		else
			put_value(out, json_object_get(data, "result"));
	} else if (strcmp(event, "error") == 0) {
		call->has_error = true;
		put_error(out, data);
	} else if (strcmp(event, "end") == 0) {
		const json_t *error = json_object_get(data, "error");

		if (!call->has_error && json_is_object(error))
			put_error(out, error);
		put_line(out, json_pack("{s:s}", "type", "end_of_execution"));
	}
}

static int ask_health(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		"/v1/sandboxes/%s", call->id);
}

static void answer_health(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	json_decref(body);
	request_answer_text(req, status == 200 ? 200 : 502, "application/json", "\"OK\"");
}

const struct e2b_row e2b_interpreter_rows[] = {
	{"POST", INTERPRETER "/execute", ask_execute, answer_run, tell_event, LINES},
	{"POST", INTERPRETER "/contexts", ask_create, answer_context},
	{"GET", INTERPRETER "/contexts", ask_list, answer_list},
	{"DELETE", INTERPRETER "/contexts/{part}", ask_delete, answer_done},
	{"POST", INTERPRETER "/contexts/{part}/restart", ask_restart, answer_done},
	{"GET", INTERPRETER "/health", ask_health, answer_health},
};
const size_t e2b_interpreter_count = array_len(e2b_interpreter_rows);
