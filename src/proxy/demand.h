/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request demands: whether it can be passed on at all, and what it shows to be let in. */
#pragma once

#include "http/message.h"
#include "proxy/proxy.h"

#define DEMAND_HOST_MAX	  300
#define DEMAND_TARGET_MAX 8192
#define DEMAND_DIGEST_LEN 32

/* Why it cannot be passed on, or NULL. */
const struct proxy_refusal *demand_fault(const struct message *request);

/* A WebSocket; no other change of protocol is passed on. */
bool demand_is_upgrade(const struct message *request);

/* Who speaks HTTP/1.0 knows neither chunks nor hints, and gets one answer. */
bool demand_is_old(const struct message *request);

/* A browser that opens a page. */
bool demand_is_page(const struct message *request);

/* A browser asks for a page of another origin, without saying so with Origin. */
bool demand_is_foreign(const struct message *request);

/* What it says of itself; of its connection nothing yet. */
struct proxy_visit demand_visit(const struct message *request);

/* All that decides whether it is let in, in few bytes. */
void demand_digest(const struct message *request, char digest[DEMAND_DIGEST_LEN]);
