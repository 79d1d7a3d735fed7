/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/recipe.h"

/* Reads the stage `reading->recipe->stage` of a Dockerfile (RECIPE_TARGET: the one that is wanted). */
int recipe_read_dockerfile(struct recipe_reading *reading, const json_t *source, struct err *err)
	must_check;
