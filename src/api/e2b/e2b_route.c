/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/e2b_route.h"

#include "api/e2b/e2b_call.h"
#include "http/message.h"
#include "model/sandbox/preview_name.h"

#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 8192
#define BODY_MAX   512

static const struct {
	unsigned port;
	const char *service;
} services[] = {{49983, "envd"}, {49999, "interpreter"}};

static const char *service_of(unsigned port)
{
	for (size_t i = 0; i < array_len(services); i++) {
		if (services[i].port == port)
			return services[i].service;
	}
	return NULL;
}

bool e2b_route_read(
	const struct proxy_visit *visit, const char *domain, struct e2b_route *ret_route)
{
	struct slice id = message_get(visit->request, "E2b-Sandbox-Id");
	struct slice port_text = message_get(visit->request, "E2b-Sandbox-Port");
	struct e2b_route route = {0};
	uint16_t port;

	if (preview_name_parse(visit->host, domain, route.id, &port) == 0) {
		route.service = service_of(port);
	} else if (id.at && id.len == ID_LEN && port_text.at) {
		memcpy(route.id, id.at, ID_LEN);
		for (size_t i = 0; i < array_len(services) && !route.service; i++) {
			char number[8];

			snprintf(number, sizeof(number), "%u", services[i].port);
			if (slice_is(port_text, number))
				route.service = services[i].service;
		}
	}
	if (!route.service || !id_is_valid(route.id))
		return false;
	*ret_route = route;
	return true;
}

/* Each of them shows the same token; which one a client sends depends on what it asks for. */
static struct slice token_of(const struct proxy_visit *visit)
{
	struct slice token = message_get(visit->request, "X-Access-Token");

	return token.at ? token : message_get(visit->request, "E2B-Traffic-Access-Token");
}

void e2b_route_lead(
	const struct e2b_route *route, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct slice token = token_of(visit);

	snprintf(way->put_prefix, sizeof(way->put_prefix), E2B_DATA_PATH "%s/%s", route->id,
		route->service);
	way->put_fields = BUF_INIT(FIELDS_MAX);
	if (token.at && token.len < FIELDS_MAX / 2)
		buf_printf(&way->put_fields, "X-API-Key: %.*s\r\n", (int)token.len, token.at);
	way->hides_api_key = true;
}

void e2b_route_refuse(const struct e2b_route *route, struct proxy_way *way)
{
	way->kind = PROXY_ANSWER;
	way->status = 502;
	way->type = "application/json";
	way->body = BUF_INIT(BODY_MAX);
	buf_printf(&way->body,
		"{\"sandboxId\":\"%s\",\"message\":\"The sandbox was not found\",\"code\":502}",
		route->id);
}
