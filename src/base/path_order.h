/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a tree of files is walked: each directory before what is in it, siblings by
 * the bytes of their names.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Compares two relative paths; < 0: a comes first. */
static inline int path_order(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	/* The end of a name comes before every byte of a longer one. */
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* Whether path is in the directory dir, at any depth; "" is the root of both. */
static inline bool path_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return len == 0 ? path[0] : strncmp(path, dir, len) == 0 && path[len] == '/';
}
