/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has files but no row, for administrators: sandboxes (core/sandbox/orphan.h), then snapshots and layers of images
 * (core/sandbox/orphan_files.h). The cursor of a page is the id of a sandbox, or the kind and name of files.
 */
#include "api/handlers.h"
#include "api/sandbox/sandbox_body.h"
#include "core/sandbox/orphan.h"
#include "core/sandbox/orphan_files.h"
#include "core/sandbox/sandbox_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

struct adopt_body {
	const char *organization;
	const char *user;
};

static const char *check_name(const json_t *value)
{
	return model_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be 1 to 63 of a-z A-Z 0-9 . _ -, the first a letter or digit";
}

static const struct field rows[] = {
	{"organization", FIELD_STRING, offsetof(struct adopt_body, organization), 1,
		MODEL_NAME_MAX - 1, 0, "Whose it becomes; by default that of whoever adopts it.",
		.check = check_name},
	{"user", FIELD_STRING, offsetof(struct adopt_body, user), 1, MODEL_NAME_MAX - 1, 0,
		"Whose it becomes; by default that of whoever adopts it.", .check = check_name},
};
const struct fields orphans_fields = {rows, array_len(rows)};

static json_t *orphan_to_json(struct driver *driver, const struct orphan *orphan)
{
	char location[DRIVER_LOCATION_MAX];
	struct err ignored;
	bool is_known = driver->ops->locate &&
			driver->ops->locate(driver, orphan->id, location, &ignored) == 0;

	return json_pack("{s:s, s:s, s:s?}", "id", orphan->id, "kind", "sandbox", "location",
		is_known ? location : NULL);
}

/* The list of a page, which has one more than may be shown if there is a next page. */
struct page {
	json_t *list;
	size_t max;
};

static void add_sandboxes(struct api *api, const char *after, struct page *page)
{
	auto_free struct orphan *orphans = mem_new(page->max * sizeof(*orphans));
	size_t count = orphan_list(api->engine, after, orphans, page->max);

	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			page->list, orphan_to_json(engine_driver(api->engine), &orphans[i]));
}

static int add_files(
	struct api *api, const struct orphan_files *after, struct page *page, struct err *err)
{
	size_t room = page->max - json_array_size(page->list);
	auto_free struct orphan_files *files = mem_new((room + 1) * sizeof(*files));
	int count = orphan_files_list(api->engine, after, files, room, err);

	for (int i = 0; i < count; i++)
		json_array_append_new(
			page->list, json_pack("{s:s, s:s, s:n}", "id", files[i].name, "kind",
					    orphan_files_kind_name(files[i].kind), "location"));
	return count < 0 ? count : 0;
}

/* "snapshot/<id>": false if it is no cursor of files. */
static bool read_cursor(const char *cursor, struct orphan_files *ret_after)
{
	for (int kind = 0; kind < ORPHAN_FILES_KIND_COUNT; kind++) {
		const char *name = orphan_files_kind_name((enum orphan_files_kind)kind);
		size_t len = strlen(name);

		if (strncmp(cursor, name, len) != 0 || cursor[len] != '/' ||
			strlen(cursor + len + 1) >= sizeof(ret_after->name))
			continue;
		ret_after->kind = (enum orphan_files_kind)kind;
		snprintf(ret_after->name, sizeof(ret_after->name), "%s", cursor + len + 1);
		return true;
	}
	return false;
}

/* The cursor after the last of those that are shown; takes away what is not. */
static json_t *end_page(struct page *page)
{
	const json_t *last;
	const char *kind, *id;

	if (json_array_size(page->list) < page->max)
		return json_null();
	json_array_remove(page->list, page->max - 1);
	last = json_array_get(page->list, page->max - 2);
	kind = json_string_value(json_object_get(last, "kind"));
	id = json_string_value(json_object_get(last, "id"));
	return strcmp(kind, "sandbox") == 0 ? json_string(id) : json_sprintf("%s/%s", kind, id);
}

HANDLER(orphans_list)
{
	struct api *api = context;
	const char *cursor = request_query(req, "cursor");
	struct orphan_files after = {0};
	struct page page = {0};
	json_auto_t *list = NULL;
	uint64_t limit;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = api_query_number(
			req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);
	if (r < 0)
		return r;
	page = (struct page){.list = list = json_array(), .max = limit + 1};
	if (!cursor || !read_cursor(cursor, &after))
		add_sandboxes(api, cursor ? cursor : "", &page);
	r = add_files(api, &after, &page, err);
	if (r < 0)
		return r;
	request_answer_json(
		req, 200, json_pack("{s:o, s:O}", "next_cursor", end_page(&page), "orphans", list));
	return 0;
}

static void set_name(char place[MODEL_NAME_MAX], const char *name)
{
	if (name)
		snprintf(place, MODEL_NAME_MAX, "%s", name);
}

HANDLER(orphans_adopt)
{
	struct api *api = context;
	struct adopt_body body = {0};
	struct owner owner = api_owner(req);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	int r = api_check_ready(api, err);

	fields_clear(&orphans_fields, &body);
	if (r == 0)
		r = fields_decode(&orphans_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	set_name(owner.organization, body.organization);
	set_name(owner.user, body.user);
	r = sandbox_request_adopt(api->engine, &owner, request_param(req, "id"), &sandbox, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	request_answer_json(req, 201, sandbox_to_json(api, &record));
	sandbox_record_fini(&record);
	return 0;
}

HANDLER(orphans_purge)
{
	struct api *api = context;
	const char *id = request_param(req, "id");
	int r = api_check_ready(api, err);

	if (r == 0)
		r = orphan_exists(api->engine, id) ? orphan_purge(api->engine, id, err)
						   : orphan_files_purge(api->engine, id, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}
