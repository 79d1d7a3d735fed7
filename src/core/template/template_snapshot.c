/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_snapshot.h"

#include "core/engine/sandbox_state.h"
#include "core/template/image/layer_capture.h"
#include "store/sandbox/store_snapshot.h"

#include <errno.h>

static int find(struct store *store, const struct owner *owner, const json_t *value,
	struct snapshot_record *ret_snapshot, struct err *err)
{
	const char *id = json_string_value(value);
	int r;

	if (!id_is_valid(id))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field snapshot must be 26 characters of 0-9a-z");
	r = store_snapshot_get(store, owner, id, ret_snapshot, err);
	if (r < 0 || json_object_get(json_object_get(ret_snapshot->settings, "image"), "stack"))
		return r;
	snapshot_record_fini(ret_snapshot);
	return err_explain(err, ERR_INVALID, "no_image",
		"create sandboxes from the snapshot, or start from an image",
		"the sandbox of snapshot %s was started from the files of the host, which are no "
		"layers that a template could have",
		id);
}

int template_snapshot_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	struct snapshot_record snapshot;
	int r = find(engine->config.store, &caller->owner, value, &snapshot, err);

	if (r == 0)
		snapshot_record_fini(&snapshot);
	return r;
}

static int add_layer(struct template_build *build, const char *snapshot_id,
	struct image_pulled *pulled, struct err *err)
{
	const struct image_pull pull = template_build_pull(build);
	struct image_config *config = &pulled->config;
	int r;

	if (config->layer_count == IMAGE_LAYERS_MAX)
		return err_explain(err, ERR_INVALID, "too_many_layers",
			"begin from a template with fewer layers",
			"a template has at most %d layers", IMAGE_LAYERS_MAX);
	job_log(build->job, "packing the files of snapshot %s", snapshot_id);
	r = layer_capture_snapshot(&pull, snapshot_id, TEMPLATE_SNAPSHOT_SKELETON,
		&config->diff_ids[config->layer_count], &pulled->bytes, err);
	if (r < 0)
		return r;
	config->layer_count++;
	return image_pull_stack(&pull, config, &pulled->stack, err);
}

int template_snapshot_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	struct image_pulled pulled = {0};
	struct snapshot_record snapshot;
	int r = find(engine_store(build->engine), build->owner, value, &snapshot, err);

	if (r < 0)
		return r;
	r = template_build_from_image(json_object_get(snapshot.settings, "image"), &pulled, err);
	if (r == 0)
		r = add_layer(build, snapshot.id, &pulled, err);
	snapshot_record_fini(&snapshot);
	if (r < 0)
		image_pulled_fini(&pulled);
	else
		*ret_pulled = pulled;
	return r;
}
