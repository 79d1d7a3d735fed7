/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in JSON, of sandboxes, members and templates. */
#pragma once

#include "api/fields.h"

struct sandbox_resources_body {
	double cpu;
	int64_t memory, disk, pids;
};

#define SANDBOX_RESOURCES_ROWS 4
extern const struct field sandbox_resources_rows[SANDBOX_RESOURCES_ROWS];

/* As a spec has them: 0 for what was not given. ERR_INVALID names the field, which is below `prefix`. */
int resources_body_decode(const struct sandbox_resources_body *body, const char *prefix,
	struct resources *ret_resources, struct err *err) must_check;
