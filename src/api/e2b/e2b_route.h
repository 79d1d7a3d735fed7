/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests to the listener of previews are calls of E2B's protocol into a sandbox: by their host name
 * (<port>-<sandbox>.<domain>), or by the headers E2b-Sandbox-Id and E2b-Sandbox-Port, with a port that stands for a service
 * which the daemon itself gives.
 */
#pragma once

#include "model/id.h"
#include "proxy/message/proxy_way.h"

struct e2b_route {
	char id[ID_LEN + 1];
	const char *service; /* "envd" or "interpreter" */
};

/* False if it is no such call. */
bool e2b_route_read(
	const struct proxy_visit *visit, const char *domain, struct e2b_route *ret_route);

/* Makes the request one of the API's, with the token that it shows: what is put in front and added. */
void e2b_route_lead(
	const struct e2b_route *route, const struct proxy_visit *visit, struct proxy_way *way);

/* The answer for a sandbox that does not run, by which clients know that. */
void e2b_route_refuse(const struct e2b_route *route, struct proxy_way *way);
