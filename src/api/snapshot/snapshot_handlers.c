/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: copies of the files of sandboxes. */
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/sandbox/sandbox_body.h"
#include "api/text.h"
#include "core/sandbox/sandbox.h"
#include "core/snapshot/changes.h"
#include "core/snapshot/checkpoints.h"
#include "core/snapshot/snapshots.h"
#include "store/sandbox/store_snapshot.h"

#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	      1000
#define LIST_LIMIT_DEFAULT    100
#define CHANGES_LIMIT_MAX     10000
#define CHANGES_LIMIT_DEFAULT 1000

/* --- bodies --- */

struct take_body {
	const char *name;
};

struct restore_body {
	const char *snapshot;
};

struct fork_body {
	int64_t count;
};

static const char *check_name(const json_t *value)
{
	return snapshot_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be 1 to 63 characters that can be printed";
}

static const char *check_id(const json_t *value)
{
	return id_is_valid(json_string_value(value)) ? NULL : "must be 26 characters of 0-9a-z";
}

static const struct field take_rows[] = {
	{"name", FIELD_STRING, offsetof(struct take_body, name), 1, SNAPSHOT_NAME_MAX - 1,
		FIELD_NULLABLE, "A few words of your own; several may have the same.",
		.check = check_name},
};
const struct fields snapshots_take_fields = FIELDS(take_rows);

static const struct field restore_rows[] = {
	{"snapshot", FIELD_STRING, offsetof(struct restore_body, snapshot), ID_LEN, ID_LEN,
		FIELD_REQUIRED, "Whose files it gets.", .check = check_id},
};
const struct fields snapshots_restore_fields = FIELDS(restore_rows);

static const struct field fork_rows[] = {
	{"count", FIELD_INTEGER, offsetof(struct fork_body, count), 1, SNAPSHOTS_FORK_MAX, 0,
		"How many; one."},
};
const struct fields snapshots_fork_fields = FIELDS(fork_rows);

/* --- answers --- */

static json_t *to_json(const struct api *api, const struct snapshot_record *record)
{
	return json_pack("{s:s, s:o, s:s, s:O, s:b, s:I, s:o}", "id", record->id, "name",
		record->name[0] ? json_string(record->name) : json_null(), "sandbox_id",
		record->sandbox_id, "template", json_object_get(record->settings, "template"),
		"checkpoint", record->is_checkpoint, "size", (json_int_t)record->bytes,
		"created_at", api_stored_time_to_json(api, record->created_at_ms));
}

HANDLER(snapshots_create)
{
	struct api *api = context;
	struct take_body body = {0};
	struct snapshot_record record;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&snapshots_take_fields, &body);
	if (r == 0)
		r = fields_decode(&snapshots_take_fields, request_body(req), &body, err);
	if (r == 0)
		r = snapshots_take(sandbox, body.name ? body.name : "", false, &record, err);
	if (r < 0)
		return r;
	request_set_detail(req, record.id);
	request_answer_json(req, 201, to_json(api, &record));
	snapshot_record_fini(&record);
	return 0;
}

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct snapshot_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, to_json(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

static int check_query(const char *name, const char *id, struct err *err)
{
	if (!id || id_is_valid(id))
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
		"parameter %s must be 26 characters of 0-9a-z", name);
}

HANDLER(snapshots_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *after = request_query(req, "cursor"), *sandbox;
	char sandbox_id[ID_LEN + 1];
	struct listing listing = {.api = api};
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = check_query("cursor", after, err)) < 0 ||
		(r = api_query_sandbox(req, api, sandbox_id, &sandbox, err)) < 0)
		return r;
	list_page_init(&listing.page, limit);
	/* One more tells whether there is a next page. */
	r = store_snapshot_list(engine_store(api->engine), &owner, sandbox, after ? after : "",
		(unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "snapshots", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(snapshots_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct snapshot_record record;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = store_snapshot_get(engine_store(api->engine), &owner,
			request_param(req, "snapshot"), &record, err);
	if (r < 0)
		return r;
	request_answer_json(req, 200, to_json(api, &record));
	snapshot_record_fini(&record);
	return 0;
}

HANDLER(snapshots_delete)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *id = request_param(req, "snapshot");
	int r = api_check_ready(api, err);

	if (r < 0)
		return r;
	request_set_detail(req, id);
	r = snapshots_remove(api->engine, &owner, id, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

static void answer_sandbox(struct request *req, const struct api *api, struct sandbox *sandbox)
{
	struct sandbox_record record;

	sandbox_read(sandbox, &record);
	request_answer_json(req, 200, sandbox_to_json(api, &record));
	sandbox_record_fini(&record);
}

HANDLER(snapshots_restore_sandbox)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct restore_body body = {0};
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&snapshots_restore_fields, &body);
	if (r == 0)
		r = fields_decode(&snapshots_restore_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	request_set_detail(req, body.snapshot);
	r = snapshots_restore(sandbox, &owner, body.snapshot, err);
	if (r == 0)
		answer_sandbox(req, api, sandbox);
	return r;
}

HANDLER(snapshots_undo)
{
	struct api *api = context;
	struct sandbox *sandbox;
	char id[ID_LEN + 1];
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = checkpoints_undo(sandbox, id, err);
	if (r < 0)
		return r;
	request_set_detail(req, id);
	answer_sandbox(req, api, sandbox);
	return 0;
}

static json_t *failure_to_json(const struct err *failure)
{
	const struct err_class *class = err_class((enum err_kind)failure->kind);

	return json_pack("{s:s, s:s, s:o}", "code", failure->code[0] ? failure->code : class->code,
		"message", failure->message, "remediation",
		failure->remedy[0] ? json_string(failure->remedy) : json_null());
}

static json_t *fork_to_json(const struct api *api, struct snapshots_fork *fork)
{
	json_t *made = json_array(), *failures = json_array();

	for (size_t i = 0; i < fork->made_count; i++) {
		struct sandbox_record record;

		sandbox_read(fork->made[i], &record);
		json_array_append_new(made, sandbox_to_json(api, &record));
		sandbox_record_fini(&record);
		sandbox_unref(fork->made[i]);
	}
	for (size_t i = 0; i < fork->failure_count; i++)
		json_array_append_new(failures, failure_to_json(&fork->failures[i]));
	return json_pack("{s:o, s:o}", "sandboxes", made, "errors", failures);
}

HANDLER(snapshots_fork_sandbox)
{
	struct api *api = context;
	auto_free struct snapshots_fork *fork = mem_new(sizeof(*fork));
	struct fork_body body = {0};
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&snapshots_fork_fields, &body);
	if (r == 0)
		r = fields_decode(&snapshots_fork_fields, request_body(req), &body, err);
	if (r == 0)
		r = snapshots_fork(sandbox, body.count > 0 ? (unsigned)body.count : 1, fork, err);
	if (r == 0)
		request_answer_json(req, 201, fork_to_json(api, fork));
	return r;
}

/* --- changes --- */

static const char *const kind_names[] = {
	[CHANGE_ADDED] = "added",
	[CHANGE_MODIFIED] = "modified",
	[CHANGE_DELETED] = "deleted",
};

struct changes_page {
	struct list_page page;
	char last[AGENT_PATH_MAX];
};

static bool list_change(const struct change *change, void *arg)
{
	struct changes_page *changes = arg;
	json_t *item = json_pack(
		"{s:s, s:I}", "kind", kind_names[change->kind], "size", (json_int_t)change->size);

	text_set(item, "path", (const uint8_t *)change->path, strlen(change->path));
	if (!list_page_add(&changes->page, item))
		return false;
	snprintf(changes->last, sizeof(changes->last), "%s", change->path);
	return true;
}

static int answer_changes(struct request *req, struct sandbox *sandbox,
	const struct snapshot_record *since, uint64_t limit, struct err *err)
{
	auto_free struct changes_page *changes = mem_new(sizeof(*changes));
	char after[AGENT_PATH_MAX];
	int r = list_page_read_path(req, after, sizeof(after), err);

	if (r < 0)
		return r;
	list_page_init(&changes->page, limit);
	r = changes_find(sandbox,
		&(struct changes_query){
			.since = since, .after = after, .each = list_change, .arg = changes},
		err);
	if (r == 0)
		list_page_answer(
			&changes->page, req, "changes", list_page_path_cursor(changes->last));
	list_page_fini(&changes->page);
	return r;
}

HANDLER(snapshots_list_changes)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *since = request_query(req, "since");
	struct snapshot_record snapshot;
	struct sandbox *sandbox;
	uint64_t limit;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_number(req, "limit", 1, CHANGES_LIMIT_MAX, CHANGES_LIMIT_DEFAULT,
			 &limit, err)) < 0 ||
		(r = check_query("since", since, err)) < 0)
		return r;
	if (since)
		r = store_snapshot_get(engine_store(api->engine), &owner, since, &snapshot, err);
	if (r < 0)
		return r;
	r = answer_changes(req, sandbox, since ? &snapshot : NULL, limit, err);
	if (since)
		snapshot_record_fini(&snapshot);
	return r;
}
