/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document, made from the route table. */
#pragma once

#include <jansson.h>

struct route;

json_t *openapi_make(void);

/* What a route takes in its path, query and headers: name, in, description, required and schema of each. */
json_t *openapi_parameters(const struct route *route);
