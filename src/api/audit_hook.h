/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server is given to keep account of requests (server_config in http/server/server.h): each one that
 * may have changed something becomes an entry of the audit log before it is answered. No handler takes
 * part in that, so none can forget it; one may only say more.
 */
#pragma once

#include "api/api.h"

/* server_config.account and server_config.refused; the context is the struct api. */
void audit_hook_account(void *api, const struct request *req);
void audit_hook_refused(void *api, const struct request *req);

/* For a handler: notes the command that is to be run, as its hash or as it is (api->audits_commands). */
void audit_hook_command(const struct api *api, struct request *req, const char *const *argv);
