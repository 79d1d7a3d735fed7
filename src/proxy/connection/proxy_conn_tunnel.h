/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket: bytes in both directions until one side ends. */
#pragma once

#include "proxy/connection/proxy_conn_state.h"

/* The app has agreed. */
void proxy_conn_tunnel_start(struct proxy_conn *conn);

/* In the state TUNNEL: whether something moved. */
bool proxy_conn_tunnel_move(struct proxy_conn *conn);
