/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/template_bootstrap.h"

#include "core/engine/sandbox_state.h"
#include "core/template/build/apt_sources.h"
#include "core/template/build/build_layers.h"
#include "core/template/build/mirror_rules.h"
#include "core/template/build/template_builder.h"
#include "core/template/templates.h"
#include "image/recipe_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MMDEBSTRAP "/usr/bin/mmdebstrap"
#define TARGET	   "var/lib/sandlot-bootstrap" /* in the builder */

extern const char bootstrap_sh[];

static int need_mmdebstrap(struct err *err)
{
	if (access(MMDEBSTRAP, X_OK) == 0)
		return 0;
	return err_explain(err, ERR_UNAVAILABLE, "mmdebstrap_missing",
		"install it on the host: apt-get install mmdebstrap",
		"a Debian is made by mmdebstrap, which the host does not have");
}

int template_bootstrap_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	const char *suite = json_string_value(json_object_get(value, "suite"));
	json_auto_t *source = json_pack("{s:{s:s, s:O*}}", "recipe", "from", "debian", "apt",
		json_object_get(value, "packages"));
	struct recipe recipe;
	int r;

	(void)engine;
	(void)caller;
	if (!suite || !apt_sources_is_suite(suite))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field bootstrap.suite must be the name of a release of Debian: bookworm");
	r = recipe_read(source, NULL, &recipe, err);
	if (r < 0)
		return r;
	recipe_fini(&recipe);
	return need_mmdebstrap(err);
}

/* --- the first layer --- */

static void make_key(const char *suite, const json_t *lines, char *ret_key)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	auto_free char *text = json_dumps(lines, JSON_COMPACT);
	struct digest digest;

	digest_stream_add(hash, bootstrap_sh, strlen(bootstrap_sh) + 1);
	digest_stream_add(hash, suite, strlen(suite) + 1);
	digest_stream_add(hash, text, strlen(text) + 1);
	digest_stream_read(hash, &digest);
	strcpy(ret_key, digest_hex(&digest));
}

static int make_layer(struct build_layers *layers, const char *suite, const json_t *lines,
	const char *key, struct err *err)
{
	const struct template_build *build = layers->build;
	json_auto_t *rules = mirror_rules_of_sources(lines);
	json_auto_t *argv = json_pack("[s, s, s, s, s, s]", "/bin/sh", "-c", bootstrap_sh,
		"bootstrap.sh", suite, "/" TARGET);
	const struct build_sandbox_spec spec = {.template_name = "host", .allow = rules};
	struct build_sandbox box;
	int r = need_mmdebstrap(err);

	if (r == 0)
		r = build_sandbox_open(build->engine, build->owner, build->job, &spec, &box, err);
	if (r < 0)
		return r;
	json_array_extend(argv, (json_t *)lines);
	r = build_sandbox_run(
		&box, &(struct build_command){.argv = argv, .user = "", .workdir = "/"}, err);
	if (r == 0)
		r = build_layers_add(layers, &box, TARGET, key, err);
	build_sandbox_close(&box);
	return r;
}

static int show(const struct build_layers *layers, struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *image = json_pack("{s:{s:s}, s:[s]}", "env", "PATH",
		"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "command", "bash");
	int r;

	build_layers_show(layers, image);
	r = template_build_from_image(image, ret_pulled, err);
	if (r == 0)
		ret_pulled->bytes = layers->so_far.bytes;
	return r;
}

int template_bootstrap_suite(struct template_build *build, const char *suite,
	struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *lines = templates_apt_sources(build->engine->config.templates, suite);
	struct build_layers layers;
	char key[DIGEST_LEN + 1];
	const json_t *line;
	size_t i;
	int r = 0;

	make_key(suite, lines, key);
	build_layers_init(&layers, build, NULL);
	job_log(build->job, "a Debian of the suite %s, from its packages", suite);
	if (build_layers_take(&layers, key)) {
		job_log(build->job, "taken from the cache");
	} else {
		json_array_foreach(lines, i, line)
		{
			job_log(build->job, "%s", json_string_value(line));
		}
		r = make_layer(&layers, suite, lines, key, err);
	}
	if (r == 0)
		r = show(&layers, ret_pulled, err);
	build_layers_fini(&layers);
	return r;
}

int template_bootstrap_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	const char *suite = json_string_value(json_object_get(value, "suite"));
	json_t *packages = json_object_get(value, "packages");
	json_auto_t *recipe = NULL, *lines = NULL;
	struct image_pulled base;
	int r = template_bootstrap_suite(build, suite, &base, err);

	if (r < 0)
		return r;
	if (json_array_size(packages) == 0) {
		*ret_pulled = base;
		return 0;
	}
	recipe = json_pack("{s:O}", "apt", packages);
	lines = templates_apt_sources(build->engine->config.templates, suite);
	return template_builder_add_own(build, &base,
		&(struct template_own_recipe){.recipe = recipe, .sources = lines}, ret_pulled, err);
}
