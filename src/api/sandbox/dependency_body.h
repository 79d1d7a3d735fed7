/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for a sandbox, as a body has them: that of POST .../dependencies, and `dependencies` of a create. */
#pragma once

#include "api/fields.h"
#include "model/template/dependency_set.h"

struct dependency_body {
	const json_t *python, *node;
	const char *files[DEPENDENCY_FILES];
	enum field_boolean no_cache;
};

#define DEPENDENCY_BODY_ROWS 6
extern const struct field dependency_body_rows[DEPENDENCY_BODY_ROWS];

/* Of a sandbox that is there: its own files may name packages. */
struct dependency_request {
	struct dependency_body body;
	const char *requirements_path, *package_path;
};
extern const struct fields dependency_request_fields;

/* What the lists of a decoded body point to; the texts themselves are the body's. */
struct dependency_parts {
	const char *python[DEPENDENCY_PACKAGES_MAX], *node[DEPENDENCY_PACKAGES_MAX];
};

struct dependency_spec dependency_body_decode(
	const struct dependency_body *body, struct dependency_parts *parts);
