/* SPDX-License-Identifier: Apache-2.0 */
/* A file_set of texts in memory. */
#pragma once

#include "launch/app/file_set.h"

#include <string.h>

struct text_file {
	const char *path, *text; /* ended by a path of NULL */
};

static char *text_files_read(void *arg, const char *path)
{
	for (const struct text_file *file = arg; file->path; file++) {
		if (strcmp(file->path, path) == 0)
			return mem_strdup(file->text);
	}
	return NULL;
}

static inline struct file_set text_files_set(struct text_file *files)
{
	struct file_set set = {.read = text_files_read, .arg = files};

	for (size_t i = 0; files[i].path; i++)
		file_set_add(&set, files[i].path);
	file_set_sort(&set);
	return set;
}
