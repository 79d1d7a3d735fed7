/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all routes: what is served, by whom, and what the OpenAPI document says of it. */
#pragma once

#include "http/server/server.h"

#include <stdbool.h>
#include <stddef.h>

const struct route *routes_table(size_t *ret_count);

/* What answers a GET of any other path: the console. */
const struct route *routes_pages(void);

/* Whether the route's row lists that query parameter. */
bool routes_take_query(const struct route *route, const char *name);
