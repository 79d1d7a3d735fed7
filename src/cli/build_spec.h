/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sandlot template create` and `build` send: a recipe of options, or a Dockerfile with the files
 * beside it. The server gets texts; it reads nothing of ours by itself.
 */
#pragma once

#include "cli/copy/tree.h"
#include "cli/option.h"

#include <jansson.h>

struct build_spec {
	const char *from;
	const char *bootstrap; /* a suite of Debian, instead of from */
	struct option_list apt, apk, pip, npm, run, files, args, mirrors;
	struct option_list env; /* no option of its own */
	const char *dockerfile; /* NULL: Dockerfile in the directory */
	const char *target;	/* the stage, or NULL */
};

extern const struct option build_spec_options[];

/* The body of a request for a template made by a recipe, or of a new Debian. */
int build_spec_recipe(const struct build_spec *spec, const char *name, json_t **ret_body,
	struct err *err) must_check;

/*
 * The same by a Dockerfile, with the files of a directory but for those that its .dockerignore names. If these are too many
 * for a request the body is without them, and *ret_ignored is set to what they are sent with before
 * (build_spec_open_tree()); the caller frees it.
 */
int build_spec_dockerfile(const struct build_spec *spec, const char *name, const char *dir,
	json_t **ret_body, char **ret_ignored, struct err *err) must_check;

/* The files of such a directory as a tar. `ignored` is borrowed. */
int build_spec_open_tree(const char *dir, char *ignored, struct tree_sender **ret_sender,
	struct err *err) must_check;
