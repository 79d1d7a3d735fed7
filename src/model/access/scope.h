/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a token may do: a closed set of scopes, one of which every route asks for (api/routes.c). The
 * table in scope.c says what each means; none includes another, but that admin includes all.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum scope {
	SCOPE_READ = 1,
	SCOPE_RUN = 2,
	SCOPE_FILES = 4,
	SCOPE_MANAGE = 8,
	SCOPE_ADMIN = 16,
};

#define SCOPE_ORDINARY (SCOPE_READ | SCOPE_RUN | SCOPE_FILES | SCOPE_MANAGE)
#define SCOPE_TEXT_MAX 64 /* the names of all of them, with their NUL */

struct scope_row {
	enum scope scope;
	const char *name;
	const char *meaning;
};

extern const struct scope_row scope_table[];
extern const size_t scope_count;

/* The scope of that name, or 0. */
unsigned scope_find(const char *name, size_t len);

/* Those that are named in a text, separated by spaces; names that are not known are passed over. */
unsigned scope_parse(const char *text);

/* The names of a set, separated by spaces. */
void scope_format(unsigned scopes, char text[SCOPE_TEXT_MAX]);

/* Whether these scopes include that one. */
static inline bool scope_allows(unsigned scopes, unsigned needed)
{
	return (scopes & SCOPE_ADMIN) || (scopes & needed) == needed;
}
