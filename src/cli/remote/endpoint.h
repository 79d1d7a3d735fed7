/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of a copy: ID:PATH, a local path, or "-". Pure functions. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* A relative path in a sandbox is meant from here. */
#define ENDPOINT_HOME "/workspace"

enum endpoint_kind { ENDPOINT_LOCAL, ENDPOINT_REMOTE, ENDPOINT_STDIO };

struct endpoint {
	enum endpoint_kind kind;
	char id[41];	  /* or a name, as typed; remote only */
	char *path;	  /* remote: absolute */
	bool names_a_dir; /* it ends with a slash (or is empty) */
};

/*
 * What stands before the first colon must look like an id or a name, so "./a:b" and "/x:y" are local. The
 * path is kept as it is but for what makes it absolute: the daemon resolves it inside the sandbox.
 */
int endpoint_parse(const char *text, struct endpoint *ret, struct err *err) must_check;
void endpoint_fini(struct endpoint *endpoint);

/*
 * The name under which a copy appears inside another directory: the last part of path, a new
 * string; NULL if it has none ("/", ".", "a/..", "a/."), which means the content itself.
 */
char *endpoint_basename(const char *path);

/* "dir/name" with exactly one slash between. */
char *endpoint_join(const char *dir, const char *name);
