/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door for programs that were written for E2B: /e2b/... is its control API, and /e2b/data/<sandbox>/... is what its
 * clients ask of a sandbox, which come by the listener of previews (e2b_route.h). All words of E2B stay in this
 * directory.
 */
#include "api/e2b/e2b_call.h"
#include "api/e2b/e2b_connect.h"
#include "api/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ESCAPED_MAX (3 * E2B_PATH_MAX)

static void call_free(void *arg)
{
	struct e2b_call *call = arg;

	json_decref(call->body);
	json_decref(call->filter);
	free(call);
}

/* --- finding the row --- */

static bool take_part(const char *from, size_t len, char part[E2B_PART_MAX])
{
	if (len == 0 || len >= E2B_PART_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)from[i]) && !strchr("-_.", from[i]))
			return false;
	}
	memcpy(part, from, len);
	part[len] = '\0';
	return true;
}

/* Whether a path is of that pattern; its variable parts are kept. */
static bool matches(const char *pattern, const char *path, struct e2b_call *call)
{
	while (*pattern == '/' && *path == '/') {
		size_t pattern_len = strcspn(++pattern, "/"), len = strcspn(++path, "/");

		if (strncmp(pattern, "{id}", 4) == 0) {
			if (!take_part(path, len, call->id))
				return false;
		} else if (strncmp(pattern, "{part}", 6) == 0) {
			if (!take_part(path, len, call->part))
				return false;
		} else if (pattern_len != len || strncmp(pattern, path, len) != 0) {
			return false;
		}
		pattern += pattern_len;
		path += len;
	}
	return !*pattern && !*path;
}

static const struct e2b_row *find(const char *method, const char *path, struct e2b_call *call)
{
	const struct {
		const struct e2b_row *rows;
		size_t count;
	} tables[] = {{e2b_sandbox_rows, e2b_sandbox_count}, {e2b_process_rows, e2b_process_count},
		{e2b_filesystem_rows, e2b_filesystem_count},
		{e2b_interpreter_rows, e2b_interpreter_count}};

	for (size_t i = 0; i < array_len(tables); i++) {
		for (size_t j = 0; j < tables[i].count; j++) {
			if (strcmp(tables[i].rows[j].method, method) == 0 &&
				matches(tables[i].rows[j].path, path, call))
				return &tables[i].rows[j];
		}
	}
	return NULL;
}

/* --- help for rows --- */

char *e2b_call_escape(const char *text)
{
	auto_(buf_fini) struct buf escaped = BUF_INIT(ESCAPED_MAX + 1);

	text_put_escaped(&escaped, text);
	return buf_take_str(&escaped);
}

const char *e2b_call_text(const struct e2b_call *call, const char *name)
{
	const json_t *value = json_object_get(call->body, name);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

json_int_t e2b_call_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

bool e2b_call_resolve(const char *text, char path[E2B_PATH_MAX])
{
	const char *home = "";

	if (text[0] == '~' && (text[1] == '/' || !text[1])) {
		text += text[1] ? 2 : 1;
		home = "/workspace/";
	} else if (text[0] != '/') {
		home = "/workspace/";
	}
	if (strlen(home) + strlen(text) >= E2B_PATH_MAX)
		return false;
	snprintf(path, E2B_PATH_MAX, "%s%s", home, text);
	return true;
}

bool e2b_call_is_root(const struct request *req)
{
	const char *authorization = request_header(req, "Authorization");
	auto_free uint8_t *user = NULL;
	ssize_t len;

	if (!authorization || strncasecmp(authorization, "Basic ", 6) != 0)
		return false;
	len = text_decode_base64(authorization + 6, &user);
	return len == 5 && memcmp(user, "root:", 5) == 0;
}

int e2b_call_redirect(struct request *req, struct e2b_call *call, const struct e2b_request *to,
	struct err *err, const char *format, ...)
{
	json_auto_t *body = to->body;
	auto_free char *target = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&target, format, args) < 0)
		abort();
	va_end(args);
	return request_redirect(req,
		&(struct request_redirection){.method = to->method,
			.target = target,
			.body = body,
			.handle = to->handle,
			.accept = to->accept,
			.retell = call->row->answer,
			.retell_event = call->row->event,
			.stream_type = call->row->stream_type,
			.passes_content = call->row->flags & E2B_CONTENT,
			.arg = call},
		err);
}

static const char *message_of(const json_t *error)
{
	const char *message =
		json_string_value(json_object_get(json_object_get(error, "error"), "message"));

	return message ? message : "the server gave no reason";
}

void e2b_call_answer_error(struct request *req, int status, json_t *error)
{
	request_answer_json(
		req, status, json_pack("{s:i, s:s}", "code", status, "message", message_of(error)));
	json_decref(error);
}

/* --- the handlers --- */

/* A failure in the words that the client of the row understands. */
static void refuse(struct request *req, const struct e2b_row *row, const struct err *err)
{
	int status = err_class((enum err_kind)err->kind)->http_status;

	if (row && row->flags & E2B_CONNECT)
		e2b_connect_answer_error(
			req, row->flags & E2B_STREAM, e2b_connect_code(status, NULL), err->message);
	else
		request_answer_json(req, status,
			json_pack("{s:i, s:s}", "code", status, "message", err->message));
}

static int read_body(struct request *req, struct e2b_call *call, struct err *err)
{
	size_t len;
	const void *data = request_body_bytes(req, &len);

	if (call->row->flags & E2B_STREAM)
		return e2b_connect_read(data, len, &call->body, err);
	call->body = len > 0 ? json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL) : json_object();
	return json_is_object(call->body) ? 0
					  : err_set(err, ERR_INVALID, "the body is no JSON object");
}

static int run(struct request *req, const char *method, struct err *err)
{
	const char *path = request_path(req) + strlen("/e2b");
	struct e2b_call *call = mem_new(sizeof(*call));
	int r;

	request_keep(req, call, call_free);
	if (strncmp(path, "/v2/", 4) == 0)
		path += 3;
	call->row = find(method, path, call);
	if (!call->row)
		r = err_set(err, ERR_NOT_FOUND, "this call of E2B is not served here");
	else
		r = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0
			    ? read_body(req, call, err)
			    : 0;
	if (r == 0)
		r = call->row->ask(req, call, err);
	if (r < 0)
		refuse(req, call->row, err);
	return 0;
}

HANDLER(e2b_get)
{
	(void)context;
	return run(req, "GET", err);
}

HANDLER(e2b_post)
{
	(void)context;
	return run(req, "POST", err);
}

HANDLER(e2b_delete)
{
	(void)context;
	return run(req, "DELETE", err);
}
