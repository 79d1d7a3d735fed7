/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a template: JSON with a recipe or a Dockerfile, or the text of a Dockerfile alone. */
#include "image/dockerfile.h"
#include "image/recipe_read.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
	assert(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/../"));
}

static void check_step(const struct recipe_step *step)
{
	assert(step->title && strlen(step->title) <= 200 && !strchr(step->title, '\n'));
	assert(json_is_object(step->env) && step->user && step->workdir);
	if (step->kind == RECIPE_COPY || step->kind == RECIPE_MKDIR)
		check_path(step->target);
	if (step->kind != RECIPE_MKDIR)
		assert(json_array_size(step->words) > 0);
	for (size_t i = 0; i < json_array_size(step->words); i++)
		assert(json_is_string(json_array_get(step->words, i)));
}

static void check_recipe(const struct recipe *recipe)
{
	assert(recipe->from && *recipe->from && recipe->count <= RECIPE_STEPS_MAX);
	for (size_t i = 0; i < recipe->count; i++) {
		check_step(&recipe->steps[i]);
		assert(recipe->steps[i].source_stage < recipe->stage);
	}
}

static void check(const json_t *source)
{
	struct recipe recipe;
	struct err err;
	int count;

	if (recipe_read(source, NULL, &recipe, &err) < 0) {
		assert(err.message[0]);
		return;
	}
	check_recipe(&recipe);
	count = recipe.stage_count;
	recipe_fini(&recipe);
	for (int stage = 0; stage < count; stage++) {
		if (recipe_read_stage(source, stage, NULL, &recipe, &err) < 0)
			continue;
		assert(recipe.stage == stage && recipe.from_stage < stage);
		check_recipe(&recipe);
		recipe_fini(&recipe);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *source = json_loadb((const char *)data, size, 0, NULL);

	if (!source)
		source =
			json_pack("{s:s%, s:{s:s}}", "dockerfile", data, size, "files", "a/b", "x");
	if (source)
		check(source);
	json_decref(source);
	return 0;
}
