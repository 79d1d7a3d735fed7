/* SPDX-License-Identifier: Apache-2.0 */
/* A file as JSON, and the tag that changes with its content. */
#pragma once

#include "core/files/file_channel.h"

#include <jansson.h>

#define FILE_ENTRY_TAG_LEN 64

/* "file", "dir", "symlink", "other", or "none". */
const char *file_entry_type(enum agent_file_kind kind);

/* name, path, type, size, mode, modified_at, target. */
json_t *file_entry_to_json(const char *path, const struct file_channel_answer *answer);

void file_entry_tag(const struct agent_file_answer *file, char tag[FILE_ENTRY_TAG_LEN]);

/*
 * The value of Content-Disposition: to be saved, never shown, under the last part of the path and the suffix.
 * Every byte that could mean something to a browser is escaped.
 */
#define FILE_ENTRY_DISPOSITION_LEN 1024
void file_entry_disposition(
	const char *path, const char *suffix, char text[FILE_ENTRY_DISPOSITION_LEN]);

/* Whether a list of tags as in If-Match, or `*`, has this one. */
bool file_entry_tag_matches(const char *list, const char *tag);
