/* SPDX-License-Identifier: Apache-2.0 */
/* A function: code that is called by its name. Each version is a row in the database, and never changes. */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"

#include <jansson.h>

struct function_record {
	struct owner owner;
	char name[MODEL_NAME_MAX];
	uint32_t version; /* from 1 */
	int64_t created_at_ms;
	json_t *spec; /* object, as it was put (api/function/function_body.h) */
};

void function_record_fini(struct function_record *record);

/* Nobody's, or somebody else's. Returns -ENOENT. */
int function_not_found(const char *name, uint32_t version, struct err *err);
