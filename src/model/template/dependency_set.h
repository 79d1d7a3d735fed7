/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packages that a sandbox has beside its template, as {"python": [...], "node": [...]}: each a name,
 * with versions or without, as pip and npm know it. Options, addresses and paths are no packages: pip
 * and npm would take them for orders.
 *
 * Files may name packages too. A set has their digests, as "requirements", "package_json" and "package_lock"; what is in them
 * is for pip and npm alone, which read them in a sandbox.
 */
#pragma once

#include "base/err.h"
#include "model/text_map.h"

#include <jansson.h>

#define DEPENDENCY_PACKAGES_MAX 128 /* of a language */
#define DEPENDENCY_TEXT_MAX	200 /* bytes of one */

#define DEPENDENCY_FILE_MAX (2u << 20) /* bytes of a file */

enum dependency_file {
	DEPENDENCY_REQUIREMENTS, /* for pip */
	DEPENDENCY_PACKAGE_JSON, /* these two for npm, always both */
	DEPENDENCY_PACKAGE_LOCK,
	DEPENDENCY_FILES
};

/* The members of a set that are digests of files. */
extern const char *const dependency_file_names[DEPENDENCY_FILES];

/* What a caller asks for. */
struct dependency_spec {
	struct text_list python, node;
	const char *files[DEPENDENCY_FILES]; /* their texts; NULL: none */
	bool no_cache;			     /* installs them anew, with the newest versions */
};

/* The languages, which are the members of a set; NULL-terminated. */
extern const char *const dependency_languages[];

/* What is wrong with a package, after "has"; NULL if nothing is. */
const char *dependency_set_check_python(const char *text);
const char *dependency_set_check_node(const char *text);

/* 0, or ERR_INVALID that names the field. */
int dependency_set_check(const struct dependency_spec *spec, struct err *err) must_check;

bool dependency_spec_is_empty(const struct dependency_spec *spec);

/* A new set without files, in order; of two texts with the same package the latter counts. */
json_t *dependency_set_new(const struct dependency_spec *spec);

/* A new set of both; of a package that both have it has the text of the second, and of files
 * those of the second, if it has any for that language. Either may be NULL. */
json_t *dependency_set_join(const json_t *set, const json_t *more);

/* 0, or ERR_INVALID if there are more packages than may be. */
int dependency_set_check_size(const json_t *set, struct err *err) must_check;

bool dependency_set_is_empty(const json_t *set);

/* Whether two sets ask for the same. */
bool dependency_set_equals(const json_t *set, const json_t *other);
