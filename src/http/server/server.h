/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: libmicrohttpd on a thread for each core in front, worker threads behind.
 *
 * libmicrohttpd parses and writes HTTP. This file decides what a connection does next: reject it
 * (Host, Origin, token, size, type: before any body is read), gather a JSON body, run the handler on a
 * worker, pump a stream. Worker threads are made on demand up to a maximum and leave after a quiet
 * while; when all are busy requests wait in a bounded queue, and past that get 503 with Retry-After.
 *
 * No owner has more than three quarters of them: half of that for routes that wait for an object
 * (ROUTE_WAITS), of which no object has more than a third, and half for all others, so that one whose
 * objects do not answer can still end them. Past that requests wait, and when too many do get 429.
 */
#pragma once

#include "base/err.h"
#include "http/server/request/request.h"
#include "http/server/server_config.h"

#include <stdint.h>

struct server;

/*
 * Wrong tokens that may come from one address, at once and for good; then 429. A good one is served all the same, since
 * whoever is behind the same address (a proxy) is not to blame, and 256 bits are not guessed.
 */
#define SERVER_FAILURES		   500
#define SERVER_FAILURES_PER_SECOND 10

int server_open(const struct server_config *config, struct server **ret_server, struct err *err)
	must_check;

/* The port it listens on. */
uint16_t server_port(const struct server *server);

/*
 * A connection of this process itself, for a client of that address ("192.0.2.1"), as if the client had come by the
 * listener: *ret_fd is its end of it, non-blocking. On any thread.
 */
int server_connect(struct server *server, const char *client, int *ret_fd, struct err *err)
	must_check;

/*
 * Takes no new connection, ends event streams, closes WebSockets (1001), lets them and running requests
 * finish for up to grace_ms, then cuts the connections and frees all. Handlers that run even then are
 * waited for. A held request may be released later still.
 */
void server_close(struct server *server, unsigned grace_ms);
