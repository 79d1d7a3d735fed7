/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of ours: opened without following a link, and what is in them. */
#pragma once

#include <dirent.h>

/* Opens parent/name; -1 with errno if it is missing or something else. */
int directory_open(int parent, const char *name);

/* Lists the directory that fd is open on, which stays the caller's. NULL if it cannot. */
DIR *directory_list(int fd);

/* The next entry but "." and ".."; NULL at the end, and of a list that is NULL. */
const struct dirent *directory_next(DIR *list);

void directory_end(DIR *list);
