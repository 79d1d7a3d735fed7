/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the head of a request: whether it can be passed on, and which credentials it shows. */
#pragma once

#include "http/message.h"
#include "proxy/message/proxy_way.h"

#define REQUEST_CHECK_TARGET_MAX 8192
#define REQUEST_CHECK_DIGEST_LEN 32

/* Why it cannot be passed on, or NULL. */
const struct proxy_refusal *request_check_fault(const struct message *request);

/* A WebSocket; no other change of protocol is passed on. */
bool request_check_is_upgrade(const struct message *request);

/* A client that speaks HTTP/1.0 knows neither chunks nor interim answers, and gets one answer. */
bool request_check_is_old(const struct message *request);

/* A browser that opens a page. */
bool request_check_is_page(const struct message *request);

/* A browser asks for a page of another origin, without saying so with Origin. */
bool request_check_is_foreign(const struct message *request);

/* A browser asks for what a page of another origin shows in itself: in a frame, an object or the like. */
bool request_check_is_framed(const struct message *request);

/* A browser opens it in a window, and no page of its own origin asked for that. */
bool request_check_is_window(const struct message *request);

/* What it says of itself; of its connection nothing yet. */
struct proxy_visit request_check_visit(const struct message *request);

/* All that decides whether it is let in, in few bytes. */
void request_check_digest(const struct message *request, char digest[REQUEST_CHECK_DIGEST_LEN]);
