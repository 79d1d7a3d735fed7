/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a template on another one by a recipe or a Dockerfile (image/recipe.h). Each step that writes
 * runs in a sandbox of its own, made from the layers so far (core/template/build/build_sandbox.h); what it changed
 * becomes the next layer. A layer is taken from the cache if the same owner has run the same step on
 * the same layers with the same inputs. The rest changes the config only.
 */
#pragma once

#include "core/template/build/template_build.h"
#include "model/access/caller.h"

/* The rows "recipe" and "dockerfile" of template_source.c. The value of the second is the text, or
 * {"text", "files", "args"}. */
int template_builder_check_recipe(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err) must_check;
int template_builder_make_recipe(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err) must_check;
int template_builder_check_dockerfile(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err) must_check;
int template_builder_make_dockerfile(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err) must_check;

/* A recipe of the program's own, without `from`. */
struct template_own_recipe {
	const json_t *recipe;
	const char *run_title; /* what its commands do, for people; NULL: the command tells it */
	const json_t *sources; /* lines of a sources.list whose hosts its steps reach; NULL: none */
};

/* Builds on what is there; base's content is taken over. The steps reach all of the operator's mirrors. */
int template_builder_add_own(struct template_build *build, struct image_pulled *base,
	const struct template_own_recipe *own, struct image_pulled *ret_pulled, struct err *err)
	must_check;
