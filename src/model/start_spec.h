/* SPDX-License-Identifier: Apache-2.0 */
/* A start command as the record of a sandbox has it: {"name", "command"}, and "cwd" and "env" if given. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Borrowed. */
const char *start_spec_name(const json_t *spec);

/*
 * Tells it from any other, also one of the same name; never 0. What runs is compared with the record by it.
 * Whoever makes two with one digest fools nobody but themselves.
 */
uint64_t start_spec_digest(const json_t *spec);
