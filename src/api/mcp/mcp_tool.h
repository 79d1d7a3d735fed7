/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools that a model is offered over MCP. A tool is a route of the API under a name that a model understands: its
 * arguments are the parts of the path, the parameters and the fields of that route, or those of them that its row
 * lists, so what a tool takes and what the route takes cannot differ.
 */
#pragma once

#include "http/server/request/request_redirect.h"

#include <jansson.h>

struct mcp_tool;

/* The tool of that name, or NULL. */
const struct mcp_tool *mcp_tool_find(const char *name);

/* All of them, as tools/list shows them. */
json_t *mcp_tool_list(void);

/* Puts names of tools in the place of the routes that a text for users of the API tells to use. The caller frees it. */
char *mcp_tool_speak(const char *text);

/* A request of the API that does what a call of the tool asks for. */
struct mcp_request {
	const char *method;
	char *target; /* owned */
	json_t *body; /* owned; NULL: none */
	route_handler handle;
};

void mcp_request_fini(struct mcp_request *request);

/* ERR_INVALID names an argument that is wrong or missing. */
int mcp_tool_request(const struct mcp_tool *tool, const json_t *arguments,
	struct mcp_request *ret_request, struct err *err) must_check;
