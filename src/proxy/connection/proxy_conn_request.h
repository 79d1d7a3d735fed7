/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the head of a request, and has its way found on a worker. */
#pragma once

#include "proxy/connection/proxy_conn_state.h"

/* Says how the way of its requests is found (proxy_conn_ask). */
void proxy_conn_request_init(struct proxy_conn *conn);

/* In the state HEAD: whether something moved. */
bool proxy_conn_request_move(struct proxy_conn *conn);

/* Takes the way that was found. False if the client has left. */
bool proxy_conn_request_found(struct proxy_conn *conn);
