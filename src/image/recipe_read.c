/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe_read.h"

#include "base/buf.h"
#include "image/dockerfile.h"
#include "image/recipe_dockerfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *word_at(const json_t *words, size_t index)
{
	return json_string_value(json_array_get(words, index));
}

static int check_packages(const char *name, const json_t *list, struct err *err)
{
	json_t *one;
	size_t i;

	if (!recipe_are_texts(list, RECIPE_PACKAGES_MAX))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"field recipe.%s must be a list of at most %d texts", name,
			RECIPE_PACKAGES_MAX);
	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(one);

		/* A name that begins with - would be an option of the program. */
		if (!*text || *text == '-' || strlen(text) > RECIPE_NAME_MAX ||
			strpbrk(text, "\t\r\n"))
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"recipe.%s: %.60s is no name of a package", name, text);
	}
	return 0;
}

static int add_packages(struct recipe_reading *reading, const json_t *recipe, const char *name,
	enum recipe_step_kind kind, struct err *err)
{
	json_t *list = json_object_get(recipe, name);
	struct buf text = BUF_INIT(RECIPE_TITLE_MAX + RECIPE_NAME_MAX + 2);
	struct recipe_step *step;
	int r = list ? check_packages(name, list, err) : 0;

	if (r < 0 || json_array_size(list) == 0)
		return r;
	for (size_t i = 0; i < json_array_size(list) && text.len < RECIPE_TITLE_MAX; i++)
		buf_printf(&text, "%s%s", i > 0 ? " " : "", word_at(list, i));
	buf_append(&text, "", 1);
	step = recipe_add_step(reading, kind, name, (const char *)text.data, err);
	buf_fini(&text);
	if (!step)
		return -EINVAL;
	step->words = json_incref(list);
	return 0;
}

static int add_files(struct recipe_reading *reading, struct err *err)
{
	size_t count = json_object_size(reading->recipe->files);
	char text[40];
	struct recipe_step *step;

	if (count == 0)
		return 0;
	snprintf(text, sizeof(text), "%zu of the recipe", count);
	step = recipe_add_step(reading, RECIPE_COPY, "files", text, err);
	if (!step)
		return -EINVAL;
	step->words = json_pack("[s]", ".");
	step->target = mem_strdup("/");
	step->is_into = true;
	return 0;
}

static int add_commands(struct recipe_reading *reading, const json_t *recipe, struct err *err)
{
	json_t *list = json_object_get(recipe, "run"), *one;
	size_t i;

	if (!list)
		return 0;
	if (!recipe_are_texts(list, RECIPE_STEPS_MAX))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"field recipe.run must be a list of at most %d commands", RECIPE_STEPS_MAX);
	json_array_foreach(list, i, one)
	{
		struct recipe_step *step =
			recipe_add_step(reading, RECIPE_RUN, "run", json_string_value(one), err);

		if (!step)
			return -EINVAL;
		step->words = json_pack("[s, s, s]", "/bin/sh", "-c", json_string_value(one));
	}
	return 0;
}

static int read_recipe_env(struct recipe_reading *reading, const json_t *env, struct err *err)
{
	const char *name;
	json_t *value;
	int r = 0;

	if (env && !json_is_object(env))
		return recipe_refuse(err, "field recipe.env must be an object of texts");
	json_object_foreach((json_t *)env, name, value)
	{
		if (!json_is_string(value))
			return recipe_refuse(err, "field recipe.env must be an object of texts");
		r = recipe_set_env(reading, name, json_string_value(value), err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_names(const json_t *recipe, struct err *err)
{
	static const char *const names[] = {"from", "apt", "apk", "pip", "npm", "run", "files",
		"files_base64", "modes", "links", "directories", "env", "mirrors"};
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)recipe, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < array_len(names); i++)
			is_known |= strcmp(names[i], name) == 0;
		if (!is_known)
			return err_explain(err, ERR_INVALID, "invalid_recipe",
				"a recipe has from, apt, apk, pip, npm, run, files, modes, links, "
				"directories, env and mirrors",
				"field recipe.%.60s is not known", name);
	}
	return 0;
}

/* What changes least comes first: the steps after a changed one run again. */
static int read_recipe(struct recipe_reading *reading, const json_t *recipe, struct err *err)
{
	const char *from = json_string_value(json_object_get(recipe, "from"));
	auto_free char *user = NULL;
	int r = check_names(recipe, err);

	if (r < 0)
		return r;
	if (!from || !*from)
		return recipe_refuse(
			err, "field recipe.from must be the name of a template or an image");
	reading->recipe->from = mem_strdup(from);
	recipe_begin_config(reading);
	/* All steps of a recipe are root's; who uses the result is as the base has it. */
	user = mem_strdup(recipe_config_text(reading, "user"));
	recipe_set_config(reading, "user", json_string(""));
	if ((r = read_recipe_env(reading, json_object_get(recipe, "env"), err)) < 0 ||
		(r = add_packages(reading, recipe, "apt", RECIPE_APT, err)) < 0 ||
		(r = add_packages(reading, recipe, "apk", RECIPE_APK, err)) < 0 ||
		(r = add_packages(reading, recipe, "npm", RECIPE_NPM, err)) < 0 ||
		(r = add_packages(reading, recipe, "pip", RECIPE_PIP, err)) < 0 ||
		(r = add_files(reading, err)) < 0 || (r = add_commands(reading, recipe, err)) < 0)
		return r;
	recipe_set_config(reading, "user", json_string(user));
	return 0;
}

/* --- mirrors --- */

static int take_mirrors(struct recipe *recipe, const json_t *mirrors, struct err *err)
{
	const char *name;
	json_t *value;

	if (mirrors && !json_is_object(mirrors))
		return recipe_refuse(err, "field mirrors must be an object");
	json_object_foreach((json_t *)mirrors, name, value)
	{
		const char *text = json_string_value(value);

		if (strcmp(name, "apt") != 0 && strcmp(name, "pip") != 0 &&
			strcmp(name, "npm") != 0 && strcmp(name, "apk") != 0)
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"field mirrors has apt, pip, npm and apk, not %.40s", name);
		if (!text || strlen(text) > RECIPE_NAME_MAX || strpbrk(text, " \t\r\n\"\\") ||
			(strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0))
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"field mirrors.%s must be an address that begins with http:// or "
				"https://",
				name);
		json_object_set(recipe->mirrors, name, value);
	}
	return 0;
}

int recipe_read_stage(const json_t *source, int stage, const json_t *base,
	struct recipe *ret_recipe, struct err *err)
{
	const json_t *inner = json_object_get(source, "recipe");
	struct recipe recipe = {.steps = mem_new(RECIPE_STEPS_MAX * sizeof(*recipe.steps)),
		.stage = inner ? 0 : stage,
		.from_stage = -1,
		.stage_count = 1,
		.files = json_object(),
		.mirrors = json_object(),
		.notes = json_array()};
	struct recipe_reading reading = {.recipe = &recipe,
		.base = base,
		.global = json_object(),
		.args = json_object(),
		.names = json_array(),
		.stage = -1};
	int r;

	if (inner && !json_is_object(inner))
		r = recipe_refuse(err, "field recipe must be an object");
	else
		r = recipe_take_files(recipe.files, inner ? inner : source, err);
	if (r == 0)
		r = take_mirrors(&recipe, json_object_get(inner ? inner : source, "mirrors"), err);
	if (r == 0)
		r = inner ? read_recipe(&reading, inner, err)
			  : recipe_read_dockerfile(&reading, source, err);
	json_decref(reading.global);
	json_decref(reading.args);
	json_decref(reading.names);
	if (r < 0) {
		recipe_fini(&recipe);
		return r;
	}
	*ret_recipe = recipe;
	return 0;
}

int recipe_read(
	const json_t *source, const json_t *base, struct recipe *ret_recipe, struct err *err)
{
	return recipe_read_stage(source, RECIPE_TARGET, base, ret_recipe, err);
}
