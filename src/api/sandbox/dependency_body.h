/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for a sandbox, as a body has them: that of POST .../dependencies, and `dependencies` of a create. */
#pragma once

#include "api/fields.h"
#include "model/dependency_set.h"

struct dependency_body {
	const json_t *python, *node;
	enum field_boolean no_cache;
};

#define DEPENDENCY_BODY_ROWS 3
extern const struct field dependency_body_rows[DEPENDENCY_BODY_ROWS];
extern const struct fields dependency_body_fields;

/* What the lists of a decoded body point to; the texts themselves are the body's. */
struct dependency_parts {
	const char *python[DEPENDENCY_PACKAGES_MAX], *node[DEPENDENCY_PACKAGES_MAX];
};

struct dependency_spec dependency_body_decode(
	const struct dependency_body *body, struct dependency_parts *parts);
