/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/python_layer.h"

#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "core/template/build/build_sandbox.h"
#include "core/template/image/layer_capture.h"
#include "store/template/store_build.h"
#include "store/template/store_layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Changes with the program below, so that layers of before are not taken. */
#define KEY_PREFIX "python 1 "

/* What few programs import is left out; a file that does not compile is no failure. */
static const char program[] =
	"import compileall, re, sysconfig\n"
	"skip = re.compile('/(tests?|idlelib|tkinter|lib2to3|ensurepip|turtledemo|pydoc_data)/')\n"
	"names = ('stdlib', 'platstdlib', 'purelib', 'platlib')\n"
	"for place in sorted({sysconfig.get_path(name) for name in names}):\n"
	"    compileall.compile_dir(place, quiet=2, rx=skip)\n";

static bool needs_bytecode(const struct template_build *build, const struct image_config *config)
{
	struct err ignored;
	int found = 0;

	for (size_t i = 0; i < config->layer_count; i++) {
		int bits = store_layer_python(
			engine_store(build->engine), digest_hex(&config->diff_ids[i]), &ignored);

		found |= bits > 0 ? bits : 0;
	}
	return found == STORE_LAYER_PYTHON && config->layer_count < IMAGE_LAYERS_MAX;
}

static int compile(struct build_sandbox *box, struct err *err)
{
	json_auto_t *argv = json_pack("[s, s, s, s]", "python3", "-I", "-c", program);

	return build_sandbox_run(
		box, &(struct build_command){.argv = argv, .user = "", .workdir = "/"}, err);
}

/* Compiles in a sandbox of its own, and makes a layer of that. */
static int make(const struct template_build *build, const struct image_pull *pull,
	const struct image_pulled *pulled, struct build_cache_entry *ret_entry, struct err *err)
{
	json_auto_t *image = template_build_to_image(pulled);
	const struct build_sandbox_spec spec = {.template_name = build->name, .image = image};
	struct build_sandbox box;
	struct digest diff_id;
	int r;

	if (!image)
		return err_set(err, ERR_INVALID, "the image's config is not UTF-8");
	json_object_set_new(image, "user", json_string(""));
	r = build_sandbox_open(build->engine, build->owner, build->job, &spec, &box, err);
	if (r < 0)
		return r;
	r = compile(&box, err);
	if (r == 0)
		r = build_sandbox_stop(&box, err);
	if (r == 0)
		r = layer_capture_run(pull, box.id, NULL, &diff_id, &ret_entry->bytes, err);
	if (r == 0)
		strcpy(ret_entry->diff_id, diff_id.text);
	build_sandbox_close(&box);
	return r;
}

/* On failure the image is as it was. */
static int put_on_top(const struct image_pull *pull, struct image_pulled *pulled,
	const char *diff_id, struct err *err)
{
	struct image_config *config = &pulled->config;
	struct digest stack;
	int r;

	if (!diff_id[0])
		return 0;
	r = digest_parse(diff_id, &config->diff_ids[config->layer_count], err);
	if (r < 0)
		return r;
	config->layer_count++;
	r = image_pull_stack(pull, config, &stack, err);
	if (r < 0)
		config->layer_count--;
	else
		pulled->stack = stack;
	return r;
}

static int add(struct template_build *build, struct image_pulled *pulled, struct err *err)
{
	struct store *store = engine_store(build->engine);
	struct image_pull pull = template_build_pull(build);
	struct build_cache_entry entry = {0};
	char key[sizeof(KEY_PREFIX) + DIGEST_LEN];
	struct err ignored;
	int r;

	snprintf(key, sizeof(key), KEY_PREFIX "%s", digest_hex(&pulled->stack));
	if (!build->no_cache &&
		store_build_cache_get(store, build->owner, key, &entry, &ignored) == 0) {
		json_decref(entry.note);
		if (put_on_top(&pull, pulled, entry.diff_id, &ignored) == 0)
			return 0;
	}
	if (build->job)
		job_log(build->job, "compiling the library of Python");
	entry = (struct build_cache_entry){0};
	r = make(build, &pull, pulled, &entry, err);
	if (r == 0)
		r = put_on_top(&pull, pulled, entry.diff_id, err);
	if (r == 0 && store_build_cache_put(store, build->owner, key, &entry, &ignored) < 0)
		log_warning("%s", ignored.message);
	return r;
}

int python_layer_add(struct template_build *build, struct image_pulled *pulled)
{
	struct err err = {0};
	int r = needs_bytecode(build, &pulled->config) ? add(build, pulled, &err) : 0;

	if (r < 0 && r != -ECANCELED && build->job)
		job_log(build->job, "the library of Python is not compiled: %s", err.message);
	else if (r < 0 && r != -ECANCELED)
		log_info("the library of Python in template %s is not compiled: %s", build->name,
			err.message);
	return r == -ECANCELED ? r : 0;
}
