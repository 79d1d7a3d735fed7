/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What listens in a sandbox, and connections to it. A connection is a WebSocket that any TCP protocol passes
 * through (http/server/request/tunnel.h): `sandlot port-forward` makes local ports of them.
 */
#include "api/handlers.h"
#include "core/preview/port_list.h"
#include "core/preview/preview.h"
#include "core/sandbox/forwarded_conn.h"
#include "http/server/request/tunnel.h"
#include "http/websocket/websocket.h"
#include "model/sandbox/sandbox_port.h"

#define PROTOCOL	"tcp.v1"
#define LIST_TIMEOUT_MS 15000

static json_t *encode_port(
	const struct api *api, const struct sandbox_record *record, const struct port *port)
{
	struct sandbox_port shown = {0};
	bool is_shown = sandbox_port_find(record, port->number, &shown) && port_is_reachable(port);
	json_t *json = port_to_json(port);
	char url[API_PREVIEW_URL_MAX];

	api_preview_url(api, record->id, port->number, url);
	json_object_set_new(json, "preview_url", is_shown ? json_string(url) : json_null());
	json_object_set_new(json, "public", json_boolean(is_shown && shown.is_public));
	return json;
}

HANDLER(ports_list)
{
	struct api *api = context;
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct port_list list;
	json_t *ports;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = port_list_read(sandbox, LIST_TIMEOUT_MS, &list, err)) < 0)
		return r;
	ports = json_array();
	sandbox_read(sandbox, &record);
	for (size_t i = 0; i < list.count; i++)
		json_array_append_new(ports, encode_port(api, &record, &list.ports[i]));
	sandbox_record_fini(&record);
	request_answer_json(req, 200,
		json_pack("{s:o, s:n, s:b}", "ports", ports, "next_cursor", "truncated",
			list.is_cut));
	port_list_fini(&list);
	return 0;
}

/* A client that is connected to a port. */
struct forwarding {
	struct sandbox *sandbox;
	struct forwarded_conn *forwarded_conn;
};

static void forwarding_over(void *arg)
{
	struct forwarding *forwarding = arg;

	forwarded_conn_free(forwarding->forwarded_conn);
	sandbox_leave(forwarding->sandbox);
	sandbox_unref(forwarding->sandbox);
	free(forwarding);
}

HANDLER(ports_connect)
{
	struct sandbox *sandbox;
	struct forwarding *forwarding;
	struct tunnel *tunnel;
	struct forwarded_conn *forwarded_conn;
	uint16_t port;
	int fd, r;

	if ((r = api_port(req, &port, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = request_check_websocket(req, PROTOCOL, err)) < 0 ||
		(r = preview_wake(sandbox, err)) < 0)
		return r;
	forwarded_conn = forwarded_conn_new(sandbox);
	r = preview_connect(sandbox, port, &fd, err);
	if (r < 0) {
		forwarded_conn_free(forwarded_conn);
		return r;
	}
	forwarding = mem_new(sizeof(*forwarding));
	*forwarding = (struct forwarding){sandbox_ref(sandbox), forwarded_conn};
	sandbox_enter(sandbox);
	tunnel = tunnel_new(req, fd, forwarding_over, forwarding);
	forwarded_conn_tie(forwarded_conn, tunnel_cut, tunnel);
	r = request_answer_tunnel(req, PROTOCOL, tunnel, err);
	if (r < 0) {
		forwarding_over(forwarding);
		tunnel_free(tunnel);
	}
	return r;
}
