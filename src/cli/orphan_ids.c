/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/orphan_ids.h"

#include "cli/remote/listing.h"

#include <string.h>

int orphan_ids_fetch(struct client *client, json_t **ret_orphans, struct err *err)
{
	return listing_fetch_all(client, "/v1/orphans?limit=1000", "orphans", ret_orphans, err);
}

/* Of layers and stacks the whole name must be given. */
static void keep_ids(json_t *orphans)
{
	for (size_t i = json_array_size(orphans); i-- > 0;) {
		const json_t *id = json_object_get(json_array_get(orphans, i), "id");

		if (json_string_length(id) != ORPHAN_ID_LEN)
			json_array_remove(orphans, i);
	}
}

int orphan_ids_resolve(
	struct client *client, const char *text, char ret_id[ORPHAN_ID_LEN + 1], struct err *err)
{
	json_auto_t *orphans = NULL;
	int r;

	if (resolve_is_whole(text)) {
		memcpy(ret_id, text, ORPHAN_ID_LEN + 1);
		return 0;
	}
	r = orphan_ids_fetch(client, &orphans, err);
	if (r < 0)
		return r;
	keep_ids(orphans);
	return resolve_among(orphans, text, ret_id, err);
}

bool orphan_ids_is_layer(const char *text)
{
	return strspn(text, "0123456789abcdef") == ORPHAN_LAYER_LEN && !text[ORPHAN_LAYER_LEN];
}
