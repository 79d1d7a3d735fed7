/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/build_files.h"

#include "core/engine/sandbox_state.h"
#include "core/template/build/build_layers.h"
#include "core/template/build/build_sandbox.h"
#include "core/template/image/layer_capture.h"
#include "core/template/templates.h"
#include "store/template/store_layer.h"

#include <errno.h>

static int unpack(struct build_sandbox *box, const struct tar_reader_source *source,
	struct tar_reader_result *ret_result, struct err *err)
{
	int r = build_sandbox_mkdir(box, BUILD_FILES_ROOT, err);

	if (r == 0)
		r = build_sandbox_unpack(box, BUILD_FILES_ROOT, source, ret_result, err);
	return r == 0 ? build_sandbox_stop(box, err) : r;
}

static int keep(struct template_build *build, const struct tar_reader_source *source,
	struct digest *ret_digest, struct tar_reader_result *ret_result, struct err *err)
{
	const struct image_pull pull = template_build_pull(build);
	struct image_pulled nothing;
	struct build_sandbox box;
	json_auto_t *image = NULL;
	uint64_t bytes;
	int r = build_layers_begin_with_nothing(build, &nothing, err);

	if (r < 0)
		return r;
	image = template_build_to_image(&nothing);
	image_pulled_fini(&nothing);
	build_sandbox_show_as_root(image);
	r = build_sandbox_open(build->engine, build->owner, NULL,
		&(struct build_sandbox_spec){.template_name = build->name, .image = image}, &box,
		err);
	if (r < 0)
		return r;
	r = unpack(&box, source, ret_result, err);
	if (r == 0)
		r = layer_capture_copied(&pull, box.id, ret_digest, &bytes, err);
	build_sandbox_close(&box);
	return r;
}

int build_files_keep(struct engine *engine, const struct caller *caller, const char *name,
	const struct tar_reader_source *source, struct digest *ret_digest,
	struct tar_reader_result *ret_result, struct err *err)
{
	struct template_build build = {.engine = engine, .owner = &caller->owner, .name = name};
	int r = templates_check_quota(engine, &caller->owner, 1, err);

	if (r == 0)
		r = templates_begin(engine, err);
	if (r < 0)
		return r;
	r = keep(&build, source, ret_digest, ret_result, err);
	templates_end(engine);
	return r;
}

const char *build_files_named_by(const json_t *source)
{
	return json_string_value(json_object_get(source, "files_digest"));
}

int build_files_check(
	const struct engine *engine, const struct owner *owner, const char *digest, struct err *err)
{
	struct digest parsed;
	int r = digest_parse(digest, &parsed, err);

	if (r < 0)
		return r;
	r = store_layer_has(engine->config.store, owner, digest_hex(&parsed), err);
	if (r != 0)
		return r < 0 ? r : 0;
	return err_explain(err, ERR_INVALID, "files_not_found",
		"send them again: PUT /v1/templates/{name}/files",
		"field files_digest: you have sent no files of this digest, or they are gone");
}

int build_files_image(
	struct template_build *build, const char *digest, json_t **ret_image, struct err *err)
{
	const struct image_pull pull = template_build_pull(build);
	struct image_pulled pulled = {.config.layer_count = 1};
	int r = build_files_check(build->engine, build->owner, digest, err);

	if (r == 0)
		r = digest_parse(digest, &pulled.config.diff_ids[0], err);
	if (r == 0)
		r = image_pull_stack(&pull, &pulled.config, &pulled.stack, err);
	if (r < 0)
		return r;
	*ret_image = template_build_to_image(&pulled);
	build_sandbox_show_as_root(*ret_image);
	return 0;
}
