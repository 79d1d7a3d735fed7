/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/catalogue_build.h"

#include "core/engine/sandbox_state.h"
#include "core/job/job.h"
#include "core/template/build/template_bootstrap.h"
#include "core/template/build/template_builder.h"
#include "core/template/template_catalogue.h"
#include "core/template/templates.h"

#include <assert.h>
#include <string.h>

#define CONNECT_S 5 /* there is another way: a registry that does not answer is soon given up */

extern const char install_node_sh[];
extern const char install_python_sh[];
extern const char start_postgres_sh[];
extern const char start_redis_sh[];

#define PROGRAM_DIR "/usr/local/bin"

/* What program_on_debian can name. */
static const struct program {
	const char *name, *text;
} programs[] = {
	{"start-postgres", start_postgres_sh},
	{"start-redis", start_redis_sh},
};

static const char *text_of(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

int catalogue_build_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	json_auto_t *row = template_catalogue_row(json_string_value(value));

	(void)engine;
	(void)caller;
	if (!row)
		return err_explain(err, ERR_INVALID, "invalid_source", NULL,
			"the catalogue has no %.80s", json_string_value(value));
	return 0;
}

/* --- without an image --- */

static const struct program *program_of(const json_t *row)
{
	const char *name = text_of(row, "program_on_debian");

	for (size_t i = 0; name && i < array_len(programs); i++) {
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	}
	assert(!name);
	return NULL;
}

static json_t *debian_recipe(const json_t *row)
{
	json_t *recipe = json_deep_copy(json_object_get(row, "on_debian"));
	const char *node = text_of(row, "node_on_debian");
	const struct program *program = program_of(row);

	if (node)
		json_object_set_new(recipe, "run",
			json_pack("[o]", json_sprintf("major=%s\n%s", node, install_node_sh)));
	if (json_is_true(json_object_get(row, "has_python_on_debian")))
		json_object_set_new(recipe, "run", json_pack("[s]", install_python_sh));
	if (program)
		json_object_set_new(recipe, "files",
			json_pack("{s+:s}", PROGRAM_DIR "/", program->name, program->text));
	return recipe;
}

/* What the script of debian_recipe() is for, a new text; NULL if it has none. */
static char *run_title(const json_t *row)
{
	const char *node = text_of(row, "node_on_debian");

	if (node)
		return mem_printf("install Node %s", node);
	if (json_is_true(json_object_get(row, "has_python_on_debian")))
		return mem_strdup("install Python 3.12");
	return NULL;
}

/* Puts members into the config of an image. */
static int update_config(struct image_pulled *pulled, const json_t *members, struct err *err)
{
	json_auto_t *image = template_build_to_image(pulled);
	struct image_pulled shown;
	int r;

	if (!image)
		return err_set(err, ERR_INVALID, "the image's config is not UTF-8");
	json_object_update(image, (json_t *)members);
	r = template_build_from_image(image, &shown, err);
	if (r < 0)
		return r;
	image_config_fini(&pulled->config);
	pulled->config = shown.config;
	return 0;
}

/* What the config of the image would say. */
static int show_program(struct image_pulled *pulled, const json_t *row, struct err *err)
{
	json_auto_t *members = json_deep_copy(json_object_get(row, "shown_on_debian"));
	const struct program *program = program_of(row);

	if (!members)
		return 0;
	if (program)
		json_object_set_new(members, "command",
			json_pack("[s, s+]", "/bin/sh", PROGRAM_DIR "/", program->name));
	return update_config(pulled, members, err);
}

static int make_debian(struct template_build *build, const json_t *row, const json_t *sources,
	struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *recipe = debian_recipe(row);
	auto_free char *title = run_title(row);
	const struct template_own_recipe own = {recipe, title, sources};
	const char *part = build->part;
	struct image_pulled base, made;
	int r = template_bootstrap_suite(build, text_of(row, "suite"), &base, err);

	if (r < 0)
		return r;
	/* Steps that are put on either are counted anew. */
	if (!part && json_object_get(row, "on_both"))
		build->part = "its base";
	if (recipe)
		r = template_builder_add_own(build, &base, &own, &made, err);
	else
		made = base;
	build->part = part;
	if (r < 0)
		return r;
	r = show_program(&made, row, err);
	if (r < 0)
		image_pulled_fini(&made);
	else
		*ret_pulled = made;
	return r;
}

/* --- which way --- */

/* *ret_sources is set if it is a Debian of these sources. */
static int make_base(struct template_build *build, const json_t *row, json_t **ret_sources,
	struct image_pulled *ret_pulled, struct err *err)
{
	const char *image = text_of(row, "image");
	int r = template_build_fetch(build, image, CONNECT_S, ret_pulled, err);

	if (r == 0 || job_must_stop(build->job) || !template_catalogue_is_out_of_reach(err))
		return r;
	job_log(build->job, "%s cannot be had: %s", image, err->message);
	job_log(build->job, "so it is made of Debian's packages");
	*ret_sources =
		templates_apt_sources(build->engine->config.templates, text_of(row, "suite"));
	return make_debian(build, row, *ret_sources, ret_pulled, err);
}

int catalogue_build_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *row = template_catalogue_row(json_string_value(value));
	const json_t *more = json_object_get(row, "on_both");
	const char *health = text_of(row, "health");
	json_auto_t *sources = NULL;
	struct image_pulled base;
	int r;

	if (!row)
		return err_explain(err, ERR_NOT_FOUND, "template_not_found", NULL,
			"the catalogue has no %.80s", json_string_value(value));
	r = make_base(build, row, &sources, &base, err);
	if (r < 0)
		return r;
	if (health) {
		json_auto_t *members = json_pack("{s:s}", "health", health);

		r = update_config(&base, members, err);
		if (r < 0) {
			image_pulled_fini(&base);
			return r;
		}
	}
	if (more)
		return template_builder_add_own(build, &base,
			&(struct template_own_recipe){.recipe = more, .sources = sources},
			ret_pulled, err);
	*ret_pulled = base;
	return 0;
}
