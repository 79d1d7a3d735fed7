/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that are sent with a recipe or a Dockerfile: an object of what each is, by its path. Their names are foreign:
 * each becomes a plain path that leads nowhere but below.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define RECIPE_FILES_MAX 4096
#define RECIPE_NAME_MAX	 1024 /* bytes of the path of a file, a user, the name of a package */

/* Adds what "files", "files_base64", "modes", "links" and "directories" of a source are. */
int recipe_take_files(json_t *files, const json_t *source, struct err *err) must_check;

/* What one of such an object is. A directory is one that is empty: of others their files tell. */
enum recipe_file_kind { RECIPE_FILE, RECIPE_LINK, RECIPE_DIRECTORY };
enum recipe_file_kind recipe_file_kind(const json_t *content);

/* Of a file: its permission bits. Of a link: where it leads, borrowed. */
int recipe_file_mode(const json_t *content);
const char *recipe_link_target(const json_t *content);

/* Whether ADD takes that name for one of an archive. */
bool recipe_is_archive(const char *path);

/*
 * What a path of such an object is when its links are followed within these files: the content, or NULL if they lead to
 * nothing there.
 */
const json_t *recipe_resolve(const json_t *files, const char *path);

/* The bytes of a file of such an object; the caller frees them. */
int recipe_decode(const json_t *content, uint8_t **ret_data, size_t *ret_len, struct err *err)
	must_check;

/*
 * The files that one word of a copy means: calls each with a path of such an object and the part of it
 * below what was named ("" for a file named itself). Returns how many there were.
 */
size_t recipe_match(const json_t *files, const char *word,
	void (*each)(void *arg, const char *path, const char *below), void *arg);

/* A name below a directory, or an absolute one, without "." and "..": it leads nowhere above /. */
char *recipe_join_path(const char *dir, const char *name);

/* Whether an array has at most `max` texts, none of them too long. */
bool recipe_are_texts(const json_t *array, size_t max);

bool recipe_ends_in(const char *text, const char *end);
