/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examples in the OpenAPI document. A field has the example of its name, because a name means the same
 * wherever it stands; "Schema.name" and "operationId.name" are for the few that differ. Those of bodies and
 * answers are composed of the examples of their fields.
 */
#pragma once

#include <jansson.h>

/* Adds the examples to every field, parameter, body and answer of the document. */
void openapi_examples_add(json_t *document, const json_t *examples);
