/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/recipe.h"

/*
 * Reads a source as above. base is the config of what it begins with, of the same form as
 * recipe.image; NULL: it is not known yet, and only `from` and the failure count.
 */
int recipe_read(const json_t *source, const json_t *base, struct recipe *ret_recipe,
	struct err *err) must_check;
/* The same of one stage of a Dockerfile, by its number. */
int recipe_read_stage(const json_t *source, int stage, const json_t *base,
	struct recipe *ret_recipe, struct err *err) must_check;
