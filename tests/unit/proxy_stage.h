/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy between clients and an app that the test plays itself, over loopback. */
#pragma once

#include "deadline.h"
#include "http/listener.h"
#include "proxy/proxy.h"

#include <semaphore.h>

struct stage {
	int listen_fd, app_fd; /* of the proxy, of the app */
	struct listener listener;
	struct proxy_config config;
	struct proxy *proxy;
	atomic_uint_fast64_t generation;
	atomic_uint finds;
	atomic_bool is_granted;
	uint64_t good_ms, ends_in_ms;

	/* What is below "/of-<letter>" is that owner's; 'o' is the operator. What is below "/sleep<digit>" has to be woken; the digit is its lane. */
	atomic_bool is_awake;
	atomic_uint wakes; /* that have begun */
	sem_t may_wake;	   /* one for each that may end */
};

/* stage_open() with four workers and room for as many connections; or as stage->config is made between the two. */
void stage_init(struct stage *stage, unsigned max_connections);
void stage_start(struct stage *stage);
void stage_open(struct stage *stage, unsigned max_connections);
void stage_close(struct stage *stage);

/* Sockets that give up after DEADLINE_MS. */
int stage_connect(const struct stage *stage);
int stage_accept(const struct stage *stage);

void say(int sock, const char *text);

/* Reads until a text has come; all of it. */
char *hear(int sock, const char *until);
void expect(int sock, const char *until);

/* The other side ends the connection, and says nothing more. */
void expect_end(int sock);

/* The app takes a connection and the head of a request; the same when a client has said it; and answers with OK,
 * which reaches the client. */
int stage_take(const struct stage *stage);
int stage_ask(const struct stage *stage, int client, const char *request);
void stage_reply(int app, int client);

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
