/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and lists the keeper's own directories, without following a link. */
#pragma once

#include <dirent.h>

/* Opens parent/name; -1 with errno if it is missing or is no directory. */
int directory_open(int parent, const char *name);

/* Lists the directory that fd is open on; the caller keeps fd. NULL on failure. */
DIR *directory_list(int fd);

/* Returns the next entry but "." and ".."; NULL at the end, and for a list that is NULL. */
const struct dirent *directory_next(DIR *list);

void directory_end(DIR *list);

/*
 * Adds a name to those of a list that come first in order; each has `width` bytes, and there are at most max.
 * Returns how many there are then.
 */
unsigned directory_keep_first(
	char *names, size_t width, unsigned count, unsigned max, const char *name);
