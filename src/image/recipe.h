/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a template is made of another one: a recipe, or a Dockerfile. Both become the same list of
 * steps, each of which writes a layer, and the config of what comes out. The text is foreign; what
 * it may be is bounded here, and nothing of it is looked up on the host: COPY takes files that came
 * with the request.
 *
 *   {"recipe": {"from", "apt": [], "apk": [], "pip": [], "npm": [], "run": [], "files": {path: text}, "env": {}}}
 *   {"dockerfile": text, "files": {path: text}, "args": {}}
 *
 * Files that are not UTF-8 are in "files_base64"; "modes": {path: "755"} are those of files that have others than 644,
 * "links": {path: target} and "directories": [path] come with them. Both may have "mirrors": {"apt", "pip", "npm", "apk"},
 * addresses from which packages come.
 */
#pragma once

#include "base/err.h"
#include "image/recipe_files.h"

#include <jansson.h>
#include <stdint.h>

#define RECIPE_STEPS_MAX    64
#define RECIPE_PACKAGES_MAX 256

enum recipe_step_kind {
	RECIPE_RUN,
	RECIPE_COPY,
	RECIPE_MKDIR, /* WORKDIR makes its directory */
	RECIPE_APT,
	RECIPE_PIP,
	RECIPE_NPM,
	RECIPE_APK,
};

struct recipe_step {
	enum recipe_step_kind kind;
	unsigned line; /* of the Dockerfile; 0: of a recipe */
	char *title;   /* as the log shows it, one line */
	json_t *words; /* the command's arguments, the packages, or what to copy */
	char *target;  /* where to copy, or the directory; absolute */
	bool is_into;  /* the target of a copy is a directory */
	bool unpacks;  /* an archive that is named itself is unpacked into the target, by ADD */
	char *chown;   /* "user[:group]", or NULL */
	int mode;      /* of copied files, or -1 */
	json_t *env;   /* of the command: the config's variables so far, and arguments */
	char *user;    /* "" is root */
	char *workdir;
};

struct recipe {
	char *from; /* the template that it begins with */
	struct recipe_step *steps;
	size_t count;
	json_t *image;	 /* the base's config, changed: env user workdir entrypoint command ports */
	json_t *files;	 /* path: what it is (image/recipe_files.h); paths are relative and plain */
	json_t *mirrors; /* object of addresses */
	json_t *notes;	 /* texts for the log: what was left out */
};

/*
 * Reads a source as above. base is the config of what it begins with, of the same form as
 * recipe.image; NULL: it is not known yet, and only `from` and the failure count.
 */
int recipe_read(const json_t *source, const json_t *base, struct recipe *ret_recipe,
	struct err *err) must_check;
void recipe_fini(struct recipe *recipe);
