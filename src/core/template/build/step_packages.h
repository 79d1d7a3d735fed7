/* SPDX-License-Identifier: Apache-2.0 */
/* Packages of apt, pip, npm and apk in a build: how a step installs them, and how every step is told of the mirrors. */
#pragma once

#include "core/template/build/build_sandbox.h"
#include "image/recipe.h"

struct step_packages {
	const struct engine *engine;
	const json_t *mirrors; /* of the build, which go before the operator's */
	bool is_own;	       /* the recipe is the program's own, not a user's */
	const json_t
		*sources; /* of packages, if it is on a Debian that was made of these; or NULL */
};

/* Rules for the network of a step's builder, beside those that it has anyway. */
json_t *step_packages_rules(const struct step_packages *packages, const struct recipe_step *step);

/* Where a step that installs packages gets them from; NULL if nothing says it. */
const char *step_packages_mirror(
	const struct step_packages *packages, const struct recipe_step *step);

/* Adds variables to those of a step's command, and files that these name to the builder. */
int step_packages_add_mirrors(const struct step_packages *packages, struct build_sandbox *box,
	const struct recipe_step *step, json_t *env, struct err *err) must_check;

int step_packages_install(const struct step_packages *packages, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err) must_check;
