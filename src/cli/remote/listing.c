/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/listing.h"

#include "cli/remote/query.h"

#include <string.h>

#define PAGE_SIZE "200"
#define PAGES_MAX 10000 /* a server whose cursor leads in a circle must not hold us for ever */

static int fetch_page(struct client *client, const char *target, const char *cursor, json_t **ret,
	struct err *err)
{
	auto_(buf_fini) struct buf page = BUF_INIT(16384);
	auto_free char *path = NULL;

	buf_append_str(&page, target);
	query_add(&page, "cursor", cursor);
	if (page.failed)
		return err_set(err, ERR_INVALID, "the filter is too long");
	path = buf_take_str(&page);
	return client_json(client, &(struct client_call){.method = "GET", .path = path}, ret, err);
}

int listing_fetch_all(
	struct client *client, const char *target, const char *name, json_t **ret, struct err *err)
{
	json_auto_t *all = json_array();
	auto_free char *cursor = NULL;

	for (int page = 0; page < PAGES_MAX; page++) {
		json_auto_t *document = NULL;
		const char *next;
		int r = fetch_page(client, target, cursor, &document, err);

		if (r < 0)
			return r;
		if (!json_is_array(json_object_get(document, name)))
			return err_set(err, ERR_INTERNAL, "%s answered with no list of %s",
				client_url(client), name);
		json_array_extend(all, json_object_get(document, name));
		next = json_string_value(json_object_get(document, "next_cursor"));
		if (!next) {
			*ret = json_incref(all);
			return 0;
		}
		free(cursor);
		cursor = mem_strdup(next);
	}
	return err_set(err, ERR_INTERNAL, "the list of %s has no end", name);
}

int listing_fetch(
	struct client *client, const struct listing_filter *filter, json_t **ret, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(16384);
	auto_free char *text = NULL;

	buf_append_str(&target, "/v1/sandboxes");
	query_add(&target, "limit", PAGE_SIZE);
	query_add(&target, "status", filter->status);
	query_add(&target, "label", filter->label);
	query_add(&target, "project", filter->project);
	if (target.failed)
		return err_set(err, ERR_INVALID, "the filter is too long");
	text = buf_take_str(&target);
	return listing_fetch_all(client, text, "sandboxes", ret, err);
}

int listing_fetch_removed(struct client *client, json_t **ret, struct err *err)
{
	return listing_fetch_all(
		client, "/v1/sandboxes?removed=true&limit=1000", "sandboxes", ret, err);
}

bool listing_limit_holds(const json_t *sandbox, const char *wall)
{
	return json_is_string(json_object_get(json_object_get(sandbox, "walls"), wall));
}
