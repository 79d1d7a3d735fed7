/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start command: as a caller gives it, and as the record of a sandbox keeps it, which is
 * {"name", "command"}, and "cwd" and "env" if given.
 */
#pragma once

#include "model/text_map.h"

#include <stdint.h>

struct start_spec {
	const char *name;
	const char *command; /* a line for /bin/sh */
	const char *cwd;     /* NULL: the default */
	struct text_map env;
};

/* As the record keeps it; new. */
json_t *start_spec_to_json(const struct start_spec *start);

/* Borrowed. */
const char *start_spec_name(const json_t *spec);

/*
 * Tells it from any other, also one of the same name; never 0. What runs is compared with the record by it.
 * Whoever makes two with one digest fools nobody but themselves.
 */
uint64_t start_spec_digest(const json_t *spec);
