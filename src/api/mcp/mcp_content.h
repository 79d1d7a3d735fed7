/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools that are not just their route: contents of files and what a process printed, which routes move past JSON, come
 * here in pieces that a model can read; a port gets its preview with the link. All under the scope and the account of their route.
 */
#pragma once

#include "api/fields.h"
#include "api/handlers.h"

extern const struct fields mcp_content_read_fields;
extern const struct fields mcp_content_write_fields;

HANDLER(mcp_content_read_file);
HANDLER(mcp_content_write_file);
HANDLER(mcp_content_read_output);
HANDLER(mcp_content_open_port);
