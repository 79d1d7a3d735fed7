/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/listing.h"

#include "cli/query.h"

#include <string.h>

#define PAGE_SIZE "200"
#define PAGES_MAX 10000 /* a server whose cursor leads in a circle must not hold us for ever */

static int fetch_page(struct client *client, const struct listing_filter *filter,
	const char *cursor, json_t **ret, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(16384);
	auto_free char *path = NULL;

	buf_append_str(&target, "/v1/sandboxes");
	query_add(&target, "limit", PAGE_SIZE);
	query_add(&target, "status", filter->status);
	query_add(&target, "label", filter->label);
	query_add(&target, "project", filter->project);
	query_add(&target, "cursor", cursor);
	if (target.failed)
		return err_set(err, ERR_INVALID, "the filter is too long");
	path = buf_take_str(&target);
	return client_json(client, &(struct client_call){.method = "GET", .path = path}, ret, err);
}

int listing_fetch(
	struct client *client, const struct listing_filter *filter, json_t **ret, struct err *err)
{
	json_auto_t *all = json_array();
	auto_free char *cursor = NULL;

	for (int page = 0; page < PAGES_MAX; page++) {
		json_auto_t *document = NULL;
		const char *next;
		int r = fetch_page(client, filter, cursor, &document, err);

		if (r < 0)
			return r;
		if (!json_is_array(json_object_get(document, "sandboxes")))
			return err_set(err, ERR_INTERNAL, "%s answered with no list of sandboxes",
				client_url(client));
		json_array_extend(all, json_object_get(document, "sandboxes"));
		next = json_string_value(json_object_get(document, "next_cursor"));
		if (!next) {
			*ret = json_incref(all);
			return 0;
		}
		free(cursor);
		cursor = mem_strdup(next);
	}
	return err_set(err, ERR_INTERNAL, "the list of sandboxes has no end");
}
