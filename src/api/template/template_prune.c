/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of images that nothing uses, for administrators (core/template/image/layer_collect.h). */
#include "api/handlers.h"
#include "core/template/image/layer_collect.h"

#include <stdio.h>

#define TOLD_MAX 1000

struct prune_body {
	enum field_boolean dry_run, orphans;
};

static const struct field rows[] = {
	{"dry_run", FIELD_BOOLEAN, offsetof(struct prune_body, dry_run), 0, 0, 0,
		"Remove nothing, and say what would be removed."},
	{"orphans", FIELD_BOOLEAN, offsetof(struct prune_body, orphans), 0, 0, 0,
		"Remove also what the database knows nothing of: an older one was put back, or it "
		"was lost."},
};
const struct fields templates_prune_fields = FIELDS(rows);

struct listing {
	struct api *api;
	json_t *list;
};

static void add(void *arg, const struct layer_file *file, bool is_orphan)
{
	struct listing *listing = arg;
	char name[STORE_LAYER_NAME_LEN + sizeof("sha256:")];

	if (json_array_size(listing->list) >= TOLD_MAX)
		return;
	snprintf(name, sizeof(name), "sha256:%s", file->name);
	json_array_append_new(listing->list,
		json_pack("{s:s, s:s, s:o, s:o, s:b}", "kind", file->is_stack ? "stack" : "layer",
			"name", name, "bytes",
			file->bytes >= 0 ? json_integer(file->bytes) : json_null(), "last_used_at",
			file->used_at_ms ? api_stored_time_to_json(listing->api, file->used_at_ms)
					 : json_null(),
			"orphan", is_orphan));
}

HANDLER(templates_prune)
{
	struct api *api = context;
	struct prune_body body = {0};
	struct listing listing = {.api = api};
	struct layer_collect_order order = {.keeps_cache = true, .found = add, .arg = &listing};
	struct layer_collected collected;
	json_auto_t *list = NULL;
	int r = api_check_ready(api, err);

	fields_clear(&templates_prune_fields, &body);
	if (r == 0 && request_body(req))
		r = fields_decode(&templates_prune_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	list = listing.list = json_array();
	order.is_dry = body.dry_run == FIELD_TRUE;
	order.orphans = body.orphans == FIELD_TRUE;
	r = layer_collect_run(api->engine, &order, &collected, err);
	if (r < 0)
		return r;
	request_answer_json(req, 200,
		json_pack("{s:b, s:I, s:I, s:I, s:O}", "dry_run", order.is_dry, "layers",
			(json_int_t)collected.layers, "stacks", (json_int_t)collected.stacks,
			"bytes", (json_int_t)collected.bytes, "removed", list));
	return 0;
}
