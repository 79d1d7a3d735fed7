/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document, made from the route table. */
#pragma once

#include <jansson.h>

json_t *openapi_make(void);
