/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/relative_path.h"

#include <string.h>

bool relative_path_is_plain(const char *path)
{
	while (*path) {
		size_t part = strcspn(path, "/");

		if (part == 0 || (part == 1 && path[0] == '.') ||
			(part == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += part;
		if (*path && !*++path)
			return false;
	}
	return true;
}

/* The end sorts before a slash, and a slash before any other byte. */
static int rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 1;
}

int relative_path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return rank(*a) - rank(*b);
}
