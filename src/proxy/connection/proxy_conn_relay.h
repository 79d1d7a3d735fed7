/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way to the app, and the answer on its way back. */
#pragma once

#include "proxy/connection/proxy_conn_state.h"

/* The app is connected: sends it the head. */
void proxy_conn_relay_start(struct proxy_conn *conn);

/* In the state RELAY: whether something moved. */
bool proxy_conn_relay_move(struct proxy_conn *conn);
