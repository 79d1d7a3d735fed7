/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request target: "/v1/sandboxes/{id}/files?path=%2Fetc" taken apart.
 *
 * The path is cut at its slashes first and percent-decoded afterwards, so an encoded slash stays
 * inside its segment and no dot segment is ever resolved. A byte that does not belong, a broken escape or
 * an encoded NUL refuses the whole target. So does a query parameter that is given twice, but on routes that hand the
 * query on as it is (ROUTE_REPEATED_QUERY).
 */
#pragma once

#include "base/err.h"
#include "http/arena.h"

#define TARGET_MAX	8192
#define TARGET_SEGMENTS 16
#define TARGET_PARAMS	32

struct target_param {
	const char *name;
	const char *value;
};

struct target {
	unsigned segment_count; /* 0 for "/" */
	const char *segments[TARGET_SEGMENTS];
	unsigned param_count;
	struct target_param *params;
	const char *repeated; /* a parameter that is given twice; NULL: none is */
};

/* `raw` is the target as it was sent. The strings live in the arena. */
int target_parse(const char *raw, struct arena *arena, struct target *ret_target, struct err *err)
	must_check;

/* The value of a query parameter, the first if there are several, or NULL. */
const char *target_query(const struct target *target, const char *name);
