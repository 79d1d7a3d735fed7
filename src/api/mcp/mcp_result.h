/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of the API as the result of a tool: what a model reads, cut where it is too long for one. */
#pragma once

#include <jansson.h>

/*
 * Takes over the body (NULL for an empty answer). A failure of the tool, of a command or of code is a result that says
 * isError, so that the model can do something about it.
 */
json_t *mcp_result_make(int status, json_t *body);

/* The same for a call that never reached its route. */
json_t *mcp_result_fail(const char *message, const char *remedy);
