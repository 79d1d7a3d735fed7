/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we know of a client's connection beside what libmicrohttpd knows.
 *
 * The library misses two things, which the poller sees for it. A hangup: it reads edge-triggered and
 * takes a short read for the last, so an end that arrives together with data is noticed only when the
 * connection times out; and while suspended it does not look at all. And a client that sends its
 * headers or its body byte by byte: for the library every byte is a sign of life.
 *
 * Connections are limited in number. Where one too many comes, the one that has been without a request
 * for the longest gives way, so that those who only hold connections open keep nobody else out.
 *
 * A client that only shuts its sending side counts as gone, as it does for the library.
 */
#pragma once

#include "http/poller.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CONNECTION_HEAD_MS  10000 /* how long headers may take */
#define CONNECTION_BODY_MS  30000 /* how long this much of a body may take, or its rest: */
#define CONNECTION_BODY_MIN (16u * 1024)
#define CONNECTION_SWEEP_MS 2000
#define CONNECTION_NUDGE_MS 10

struct arrival;
struct loop;
struct dossier;
struct request;
struct server;

struct connection {
	atomic_uint refs; /* the library's, and callbacks of the poller */
	struct loop *loop;
	char peer[INET6_ADDRSTRLEN];	/* its address, without the port */
	uint64_t source;		/* http/sources.h */
	struct dossier *dossier;	/* NULL: it does not speak TLS */
	struct connection *prev, *next; /* in server->clients, under its lock */

	pthread_mutex_t lock;
	int sock; /* -1 once it is closed */
	bool hung_up;
	struct request *request; /* the one being served; not counted, it leaves in time */
	struct poller_watch watch;
	struct poller_alarm nudge_alarm;
	unsigned nudges;
	bool is_upgraded; /* no longer HTTP; only the connection's thread */
	bool is_cut;	  /* by us */
	uint64_t idle_since_ms;

	/* Of the sweep, and the number of requests whose headers were whole. */
	unsigned heads, heads_seen;
	uint64_t bytes_seen;
	uint64_t head_since_ms; /* 0: no headers are on their way */
	uint64_t body_since_ms; /* 0: no body is waited for */
};

/* Both on the connection's thread, when it begins (and takes the dossier) and before its descriptor is closed. */
struct connection *connection_open(struct loop *loop, int sock, struct arrival *arrival);
void connection_close(struct connection *connection);

/* A request begins, has all its headers, is over. */
void connection_begin(struct connection *connection, struct request *req);
void connection_pass_head(struct connection *connection);
void connection_end(struct connection *connection);

/* Cuts those whose headers or bodies take too long, or whose token has expired meanwhile. */
void connection_sweep(struct server *server);

/* Cuts those whose request was admitted with a token; but for one request. Then all goes on as if the
 * client had left. */
void connection_evict(struct server *server, const char *token_id, const struct request *spared);

/* Cuts the one that has been without a request for the longest, of this source or (NULL) of any. False
 * if there is none. */
bool connection_give_way(struct server *server, const uint64_t *source);
