/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/build_layers.h"

#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "core/template/image/layer_capture.h"
#include "store/template/store_build.h"

#include <string.h>

void build_layers_init(
	struct build_layers *layers, struct template_build *build, struct image_pulled *base)
{
	*layers = (struct build_layers){.build = build, .pull = template_build_pull(build)};
	if (base) {
		layers->so_far = *base;
		*base = (struct image_pulled){0};
	}
}

int build_layers_begin_with_nothing(
	struct template_build *build, struct image_pulled *ret_base, struct err *err)
{
	struct image_pull pull = template_build_pull(build);
	struct image_pulled base = {.config.layer_count = 1};
	int r = layer_capture_empty(&pull, &base.config.diff_ids[0], err);

	if (r == 0)
		r = image_pull_stack(&pull, &base.config, &base.stack, err);
	if (r == 0)
		*ret_base = base;
	return r;
}

void build_layers_fini(struct build_layers *layers)
{
	image_pulled_fini(&layers->so_far);
}

/* An empty name is no layer. */
static int put_on_top(struct build_layers *layers, const char *diff_id, struct err *err)
{
	struct image_pulled *so_far = &layers->so_far;
	struct digest stack;
	int r = 0;

	if (!diff_id[0])
		return 0;
	if (so_far->config.layer_count == IMAGE_LAYERS_MAX)
		return err_explain(err, ERR_INVALID, "too_many_layers",
			"join steps, or begin from a template with fewer layers",
			"a template has at most %d layers", IMAGE_LAYERS_MAX);
	r = digest_parse(diff_id, &so_far->config.diff_ids[so_far->config.layer_count], err);
	if (r < 0)
		return r;
	so_far->config.layer_count++;
	r = image_pull_stack(&layers->pull, &so_far->config, &stack, err);
	if (r < 0) {
		so_far->config.layer_count--;
		return r;
	}
	so_far->stack = stack;
	return 0;
}

bool build_layers_take(struct build_layers *layers, const char *key)
{
	const struct template_build *build = layers->build;
	struct store *store = engine_store(build->engine);
	struct build_cache_entry entry;
	struct err ignored;

	if (build->no_cache ||
		store_build_cache_get(store, build->owner, key, &entry, &ignored) < 0)
		return false;
	json_decref(entry.note);
	if (put_on_top(layers, entry.diff_id, &ignored) == 0) {
		layers->so_far.bytes += entry.bytes;
		return true;
	}
	(void)!store_build_cache_delete(store, build->owner, key, &ignored);
	return false;
}

int build_layers_add(struct build_layers *layers, struct build_sandbox *box, const char *below,
	const char *key, struct err *err)
{
	const struct template_build *build = layers->build;
	struct build_cache_entry entry = {0};
	struct digest diff_id;
	struct err ignored;
	int r = build_sandbox_stop(box, err);

	if (r == 0)
		r = layer_capture_run(&layers->pull, box->id, below, &diff_id, &entry.bytes, err);
	if (r == 0)
		r = put_on_top(layers, diff_id.text, err);
	if (r < 0)
		return r;
	strcpy(entry.diff_id, diff_id.text);
	layers->so_far.bytes += entry.bytes;
	/* Without the note the step only runs again. */
	if (store_build_cache_put(
		    engine_store(build->engine), build->owner, key, &entry, &ignored) < 0)
		log_warning("%s", ignored.message);
	return 0;
}

void build_layers_show(const struct build_layers *layers, json_t *image)
{
	const struct image_config *config = &layers->so_far.config;
	json_t *names = json_array();

	for (size_t i = 0; i < config->layer_count; i++)
		json_array_append_new(names, json_string(config->diff_ids[i].text));
	json_object_set_new(image, "stack", json_string(digest_hex(&layers->so_far.stack)));
	json_object_set_new(image, "layers", names);
}
