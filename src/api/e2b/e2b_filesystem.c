/* SPDX-License-Identifier: Apache-2.0 */
/* envd's filesystem.Filesystem, and the content of files. */
#include "api/e2b/e2b_call.h"
#include "api/e2b/e2b_connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILESYSTEM "/data/{id}/envd/filesystem.Filesystem/"
#define FILES	   "/v1/sandboxes/%s/files"
#define ENTRIES	   10000

static const char *reason_of(const json_t *error)
{
	const char *reason =
		json_string_value(json_object_get(json_object_get(error, "error"), "code"));

	return reason ? reason : "";
}

static const char *message_of(const json_t *error)
{
	const char *message =
		json_string_value(json_object_get(json_object_get(error, "error"), "message"));

	return message ? message : "the server gave no reason";
}

static bool answer_error(struct request *req, const struct e2b_call *call, int status, json_t *body)
{
	if (status < 300)
		return false;
	e2b_connect_answer_error(req, call->row->flags & E2B_STREAM, e2b_connect_code(status, body),
		message_of(body));
	json_decref(body);
	return true;
}

/* A path of the body, as a part of a target or as it is; the caller frees it. NULL if there is none. */
static char *read_path(const struct e2b_call *call, const char *name, bool is_escaped)
{
	const char *text = e2b_call_text(call, name);
	char path[E2B_PATH_MAX];

	if (!text || !e2b_call_resolve(text, path))
		return NULL;
	return is_escaped ? e2b_call_escape(path) : mem_strdup(path);
}

static int no_path(const char *name, struct err *err)
{
	return err_set(err, ERR_INVALID, "%s must be a path", name);
}

/* --- how an entry is told --- */

static json_t *entry_of(const json_t *file)
{
	static const struct {
		const char *type, *name;
		char letter;
	} types[] = {{"file", "FILE_TYPE_FILE", '-'}, {"dir", "FILE_TYPE_DIRECTORY", 'd'},
		{"symlink", "FILE_TYPE_SYMLINK", 'L'}};
	const char *type = json_string_value(json_object_get(file, "type"));
	const char *mode_text = json_string_value(json_object_get(file, "mode"));
	long mode = mode_text ? strtol(mode_text, NULL, 8) : 0;
	char permissions[11] = "----------";
	const char *name = "FILE_TYPE_UNSPECIFIED";

	for (size_t i = 0; i < array_len(types); i++) {
		if (type && strcmp(types[i].type, type) == 0) {
			name = types[i].name;
			permissions[0] = types[i].letter;
		}
	}
	for (int i = 0; i < 9; i++) {
		if (mode & 0400 >> i)
			permissions[i + 1] = "rwx"[i % 3];
	}
	return json_pack("{s:O, s:s, s:O, s:O, s:i, s:s, s:s, s:s, s:O, s:O*}", "name",
		json_object_get(file, "name"), "type", name, "path", json_object_get(file, "path"),
		"size", json_object_get(file, "size"), "mode", (int)mode, "permissions",
		permissions, "owner", "user", "group", "user", "modifiedTime",
		json_object_get(file, "modified_at"), "symlinkTarget",
		json_is_string(json_object_get(file, "target")) ? json_object_get(file, "target")
								: NULL);
}

static void answer_entry(struct request *req, void *arg, int status, json_t *body)
{
	if (answer_error(req, arg, status, body))
		return;
	request_answer_json(req, 200, json_pack("{s:o}", "entry", entry_of(body)));
	json_decref(body);
}

/* --- looking --- */

static int ask_stat(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *path = read_path(call, "path", true);

	return path ? e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
			      FILES "/stat?path=%s", call->id, path)
		    : no_path("path", err);
}

static int ask_list(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *path = read_path(call, "path", true);
	json_int_t depth = e2b_call_number(call->body, "depth");

	if (!path)
		return no_path("path", err);
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		FILES "/list?path=%s&depth=%d&limit=%d", call->id, path,
		depth < 1    ? 1
		: depth > 64 ? 64
			     : (int)depth,
		ENTRIES);
}

static void answer_list(struct request *req, void *arg, int status, json_t *body)
{
	json_t *entries, *file;
	size_t i;

	if (answer_error(req, arg, status, body))
		return;
	entries = json_array();
	json_array_foreach(json_object_get(body, "entries"), i, file)
	{
		/* A name that is no text cannot be told. */
		if (json_is_string(json_object_get(file, "path")))
			json_array_append_new(entries, entry_of(file));
	}
	request_answer_json(req, 200, json_pack("{s:o}", "entries", entries));
	json_decref(body);
}

/* --- changing --- */

static int ask_make(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *path = read_path(call, "path", false);

	if (!path)
		return no_path("path", err);
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST", .body = json_pack("{s:s}", "path", path)},
		err, FILES "/mkdir", call->id);
}

/* The API is content with a directory that is there. */
static void answer_made(struct request *req, void *arg, int status, json_t *body)
{
	if (status != 200) {
		answer_entry(req, arg, status, body);
		return;
	}
	json_decref(body);
	e2b_connect_answer_error(req, false, "already_exists", "the directory exists already");
}

static int ask_move(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *from = read_path(call, "source", false);
	auto_free char *to = read_path(call, "destination", false);

	if (!from || !to)
		return no_path(from ? "destination" : "source", err);
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST",
			.body = json_pack(
				"{s:s, s:s, s:b}", "from", from, "to", to, "overwrite", 1)},
		err, FILES "/move", call->id);
}

static int ask_remove(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *path = read_path(call, "path", true);

	return path ? e2b_call_redirect(req, call, &(struct e2b_request){.method = "DELETE"}, err,
			      FILES "?path=%s&recursive=true", call->id, path)
		    : no_path("path", err);
}

static void answer_removed(struct request *req, void *arg, int status, json_t *body)
{
	bool was_missing = status == 404 && strcmp(reason_of(body), "sandbox_not_found") != 0;

	if (!was_missing && answer_error(req, arg, status, body))
		return;
	json_decref(body);
	request_answer_json(req, 200, json_object());
}

/* --- watching --- */

static int ask_watch(struct request *req, struct e2b_call *call, struct err *err)
{
	auto_free char *path = read_path(call, "path", true);
	const char *text = e2b_call_text(call, "path");

	if (!path)
		return no_path("path", err);
	(void)e2b_call_resolve(text, call->path);
	for (size_t len = strlen(call->path); len > 1 && call->path[len - 1] == '/'; len--)
		call->path[len - 1] = '\0';
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		FILES "/watch?path=%s&recursive=%s", call->id, path,
		json_is_true(json_object_get(call->body, "recursive")) ? "true" : "false");
}

static void answer_watch(struct request *req, void *arg, int status, json_t *body)
{
	if (answer_error(req, arg, status, body))
		return;
	json_decref(body);
	e2b_connect_answer_error(req, true, "internal", "the directory gives no events");
}

static void put_change(
	const struct e2b_call *call, const char *type, const json_t *path, struct buf *out)
{
	const char *text = json_string_value(path);
	size_t len = strlen(call->path);

	if (!text)
		return;
	if (strncmp(text, call->path, len) == 0 && text[len] == '/')
		text += len + 1;
	e2b_connect_put(out, json_pack("{s:{s:s, s:s}}", "filesystem", "name", text, "type", type));
}

static void tell_change(void *arg, const char *event, const json_t *data, struct buf *out)
{
	static const struct {
		const char *event, *type;
	} types[] = {{"created", "EVENT_TYPE_CREATE"}, {"modified", "EVENT_TYPE_WRITE"},
		{"deleted", "EVENT_TYPE_REMOVE"}, {"moved", "EVENT_TYPE_RENAME"}};
	const struct e2b_call *call = arg;

	if (!event)
		e2b_connect_put_end(out, NULL, NULL);
	else if (!event[0])
		e2b_connect_put(out, json_pack("{s:{}}", "keepalive"));
	else if (strcmp(event, "ready") == 0)
		e2b_connect_put(out, json_pack("{s:{}}", "start"));
	for (size_t i = 0; event && i < array_len(types); i++) {
		if (strcmp(types[i].event, event) == 0)
			put_change(call, types[i].type, json_object_get(data, "path"), out);
	}
	if (event && strcmp(event, "moved") == 0)
		put_change(call, "EVENT_TYPE_CREATE", json_object_get(data, "to"), out);
}

/* --- content --- */

static int ask_read(struct request *req, struct e2b_call *call, struct err *err)
{
	const char *text = request_query(req, "path");
	auto_free char *escaped = NULL;
	char path[E2B_PATH_MAX];

	if (!text || !e2b_call_resolve(text, path))
		return no_path("path", err);
	escaped = e2b_call_escape(path);
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		FILES "?path=%s", call->id, escaped);
}

static void answer_read(struct request *req, void *arg, int status, json_t *body)
{
	(void)arg;
	if (strcmp(reason_of(body), "is_a_directory") == 0)
		status = 400;
	e2b_call_answer_error(req, status, body);
}

#define UNARY  E2B_CONNECT
#define STREAM (E2B_CONNECT | E2B_STREAM)

const struct e2b_row e2b_filesystem_rows[] = {
	{"GET", "/data/{id}/envd/files", ask_read, answer_read, .flags = E2B_CONTENT},
	{"POST", FILESYSTEM "Stat", ask_stat, answer_entry, .flags = UNARY},
	{"POST", FILESYSTEM "ListDir", ask_list, answer_list, .flags = UNARY},
	{"POST", FILESYSTEM "MakeDir", ask_make, answer_made, .flags = UNARY},
	{"POST", FILESYSTEM "Move", ask_move, answer_entry, .flags = UNARY},
	{"POST", FILESYSTEM "Remove", ask_remove, answer_removed, .flags = UNARY},
	{"POST", FILESYSTEM "WatchDir", ask_watch, answer_watch, tell_change, E2B_CONNECT_STREAM,
		STREAM},
};
const size_t e2b_filesystem_count = array_len(e2b_filesystem_rows);
