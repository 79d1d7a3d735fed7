/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the server, for the files that carry a request through it. */
#pragma once

#include "http/guard.h"
#include "http/lanes.h"
#include "http/listener.h"
#include "http/poller.h"
#include "http/router.h"
#include "http/server.h"
#include "http/workers.h"

#include <pthread.h>
#include <stdatomic.h>

struct connection;
struct loop;
struct rates;
struct sources;
struct websocket_member;

struct server {
	atomic_uint refs; /* server_open's, and one for each request */
	struct server_config config;
	struct guard *guard;
	struct rates *failures; /* wrong tokens */
	struct router *router;
	struct workers *workers;
	struct lanes *lanes;
	struct poller *poller;
	struct loop **loops;
	unsigned loop_count;

	pthread_mutex_t accept_lock; /* held while accepting; comes before all others */
	struct listener listener;    /* its fd is -1 once it is closed */
	struct poller_watch listen_watch;
	struct poller_alarm listen_alarm;
	uint64_t shortage_logged_ms; /* when a want of descriptors was; 0: never */
	atomic_uint connections;
	struct sources *sources;
	atomic_bool accept_waits; /* for a connection to end */
	pthread_mutex_t clients_lock;
	struct connection *clients;
	struct poller_alarm sweep_alarm;

	uint64_t id_seed;
	atomic_uint_fast64_t id_next;
	atomic_uint evictions; /* how many tokens were cut off */
	atomic_uint readers;   /* handlers inside request_read() */
	unsigned max_readers;
	atomic_bool closing;  /* no new requests; running ones may finish */
	atomic_bool aborting; /* nothing may be suspended any more */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *requests;
	unsigned running; /* past their headers and not over */
	struct websocket_member *websockets;
};

struct server *server_ref(struct server *server);
void server_unref(struct server *server);

/* The list of requests, and how many of them server_close() waits for. */
void server_add_request(struct server *server, struct request *req);
void server_count_request(struct server *server, struct request *req);
void server_remove_request(struct server *server, struct request *req);

/* A connection has come; false if its source has more than it may. */
bool server_connection_came(struct server *server, uint64_t source) must_check;

/* It has ended: there is room for another. */
void server_connection_left(struct server *server, uint64_t source);
