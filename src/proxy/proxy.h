/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reverse proxy for HTTP/1.1 and WebSockets. It knows no sandbox: its owner decides for each
 * request whether and where it may go (proxy_config.find).
 *
 * A few threads serve many connections. A client's connection belongs to one thread and has a
 * connection to the app of its own, so a faulty client or app harms that pair only. What may block
 * (looking up, connecting, waking) runs on worker threads.
 */
#pragma once

#include "base/err.h"
#include "proxy/proxy_config.h"

struct proxy;

int proxy_open(const struct proxy_config *config, struct proxy **ret_proxy, struct err *err)
	must_check;

/* Ends all connections. */
void proxy_close(struct proxy *proxy);
