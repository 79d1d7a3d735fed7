/* SPDX-License-Identifier: Apache-2.0 */
/* Projects: what they are. Their files are in project_files.c. */
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/project/project_body.h"
#include "core/project/projects.h"
#include "store/work/store_project.h"

#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

/* Ends the record. */
static void answer(
	struct request *req, const struct api *api, int status, struct project_record *record)
{
	request_set_object(req, record->id);
	request_answer_json(req, status, project_to_json(api, record));
	project_record_fini(record);
}

HANDLER(projects_create_one)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct project_record record;
	struct project_body body;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = project_body_decode(&project_create_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	request_set_detail(req, body.name);
	r = projects_create(
		api->projects, &owner, body.name, body.labels, body.defaults, &record, err);
	json_decref(body.defaults);
	if (r == 0)
		answer(req, api, 201, &record);
	return r;
}

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct project_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, project_to_json(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

HANDLER(projects_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *after = request_query(req, "cursor");
	struct listing listing = {.api = api};
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0)
		return r;
	if (after && !id_is_valid(after))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cursor must be the next_cursor of the page before");
	list_page_init(&listing.page, limit);
	/* One more tells whether there is a next page. */
	r = store_project_list(engine_store(api->engine), &owner, after ? after : "",
		(unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "projects", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(projects_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct project_record record;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = store_project_get(engine_store(api->engine), &owner,
			request_param(req, "project"), &record, err);
	if (r == 0)
		answer(req, api, 200, &record);
	return r;
}

HANDLER(projects_patch)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct project_record record;
	struct project_change change;
	struct project_body body;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = project_body_decode(&project_patch_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	change = (struct project_change){
		.name = body.name, .labels = body.labels, .defaults = body.defaults};
	r = projects_change(
		api->projects, &owner, request_param(req, "project"), &change, &record, err);
	json_decref(body.defaults);
	if (r == 0)
		answer(req, api, 200, &record);
	return r;
}

HANDLER(projects_delete)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	int r = api_check_ready(api, err);

	if (r == 0)
		r = projects_remove(api->projects, &owner, request_param(req, "project"), err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

HANDLER(projects_scrub_all)
{
	struct api *api = context;
	struct projects_scrub scrub;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = projects_scrub(api->projects, &scrub, err);
	if (r < 0)
		return r;
	request_answer_json(req, 200,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I}", "projects",
			(json_int_t)scrub.projects, "files", (json_int_t)scrub.files,
			"blobs_removed", (json_int_t)scrub.blobs_removed, "links_made",
			(json_int_t)scrub.links_made, "links_removed",
			(json_int_t)scrub.links_removed, "damaged", (json_int_t)scrub.damaged,
			"missing", (json_int_t)scrub.missing, "missing_files", scrub.missing_files,
			"unknown_directories", (json_int_t)scrub.unknown));
	return 0;
}
