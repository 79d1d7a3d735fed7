/* SPDX-License-Identifier: Apache-2.0 */
/* Start commands in JSON: `start` of create, ensure and PATCH, and how each fares in a sandbox. */
#pragma once

#include "api/fields.h"
#include "core/starter.h"

#define START_LINE_MAX (16 * 1024) /* bytes of a command */

/* The fields of one command in a list. */
#define START_BODY_ROWS 4
extern const struct field start_body_rows[START_BODY_ROWS];

/* For the row of `start`: what is wrong with a list as a whole, or NULL. */
const char *start_body_check(const json_t *value);

/* What was given, a line, a list or null, as the list that is kept. New. */
json_t *start_body_normalize(const json_t *value);

/* The list as it is shown, without the environments; with how they fare if the sandbox is given. New. */
json_t *start_body_encode(const json_t *start, struct sandbox *sandbox);
