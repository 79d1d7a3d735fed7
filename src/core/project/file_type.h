/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The media type of a file. Its content decides (libmagic, on the first bytes of it), and where that says no more than
 * "some text" or "some bytes", its name does.
 */
#pragma once

#include "base/err.h"
#include "model/work/project_record.h"

#define FILE_TYPE_HEAD (16u << 10) /* how much of the content is looked at */

struct file_types;

struct file_types *file_types_new(void);
void file_types_free(struct file_types *types);

/* Of a file by its first bytes and its path. Any thread may ask; one is answered at a time. */
void file_types_find(struct file_types *types, const void *head, size_t len, const char *path,
	char ret_type[PROJECT_TYPE_MAX]);

/* What is said of a file whose content has this type: the name refines what is general. */
const char *file_type_refine(const char *content_type, const char *path);

/* Whether a list of types, with commas between, has this one. A star at the end of one stands for all that follow. */
bool file_type_is_listed(const char *list, const char *type);
