/* SPDX-License-Identifier: Apache-2.0 */
/* Start commands in JSON: `start` of create, ensure and PATCH, and how each fares in a sandbox. */
#pragma once

#include "api/fields.h"
#include "core/process/start_command.h"
#include "model/sandbox/sandbox_spec.h"

/* The fields of one command in a list. */
#define START_BODY_ROWS 4
extern const struct field start_body_rows[START_BODY_ROWS];

/* For the row of `start`: what is wrong with a list as a whole, or NULL. */
const char *start_body_check(const json_t *value);

/* What a decoded list points to. */
struct start_body {
	struct start_spec commands[SPEC_STARTS_MAX];
	struct text_pair env[SPEC_STARTS_MAX][SPEC_START_ENV_MAX];
};

/* What was given, a line, a list, null or nothing, as commands; how many. */
size_t start_body_decode(const json_t *value, struct start_body *ret_body);

/* The list as it is shown, without the environments; with how they fare if the sandbox is given. New. */
json_t *start_body_encode(const json_t *start, struct sandbox *sandbox);
