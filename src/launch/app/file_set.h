/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an app as detection and validation see them: a list of paths, and a way to read one. Where they are
 * (in a project, in a sandbox, in a test) is known to whoever fills it in. What they hold is anybody's.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

#define FILE_SET_PATHS_MAX 50000      /* as many as a project may have */
#define FILE_SET_TEXT_MAX  (1u << 20) /* bytes of a file that are looked at */

/* What is said of an app that has more; an app of which a part is missing must not be started. */
#define FILE_SET_TOO_MANY                                                                          \
	"there are more than %d files, besides those that installing makes: a launch takes no "    \
	"more"

struct file_set {
	char **paths; /* owned; relative, in order */
	size_t count;
	bool has_environment; /* a virtual environment of Python is in it */
	/* The content of a file, a new text of at most FILE_SET_TEXT_MAX bytes; NULL if it cannot be read. */
	char *(*read)(void *arg, const char *path);
	void (*release)(void *arg); /* NULL: nothing is to be released */
	void *arg;
};

void file_set_fini(struct file_set *set);

/* Adds a path; false if there are too many. file_set_sort() comes after the last. */
bool file_set_add(struct file_set *set, const char *path);
void file_set_sort(struct file_set *set);

/* Leaves out those for which a function says false; it sees all of them. */
void file_set_keep(
	struct file_set *set, bool (*keeps)(const struct file_set *set, const char *path));

/* Whether there is a file of that name in a directory ("": the root). */
bool file_set_has(const struct file_set *set, const char *dir, const char *name);

/* Whether there is any file below a directory. */
bool file_set_has_directory(const struct file_set *set, const char *dir);

/* The text of a file in a directory; NULL if it is not there. The caller frees it. */
char *file_set_read(const struct file_set *set, const char *dir, const char *name);

/* The same as an object of JSON; NULL if it is not there, or is none. */
json_t *file_set_read_json(const struct file_set *set, const char *dir, const char *name);

/* A name in a directory as a path; the caller frees it. */
char *file_set_join(const char *dir, const char *name);

/* The number of the line, from 1 on, in which a place of a text is. */
unsigned file_set_line(const char *text, const char *at);
