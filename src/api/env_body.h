/* SPDX-License-Identifier: Apache-2.0 */
/* The environment in a body, of a sandbox or of a command. */
#pragma once

#include <jansson.h>

/* What is wrong with the names and values of a map; NULL if nothing is. */
const char *env_body_check(const json_t *env);
