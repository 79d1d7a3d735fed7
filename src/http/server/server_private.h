/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the server, for the files that carry a request through it. */
#pragma once

#include "event/timer.h"
#include "http/fair_queue.h"
#include "http/listener.h"
#include "http/server/answer_stats.h"
#include "http/server/route/guard.h"
#include "http/server/route/router.h"
#include "http/server/server_config.h"
#include "http/websocket/websocket_private.h"
#include "http/workers.h"

#include <pthread.h>
#include <stdatomic.h>

struct connection;
struct loop;
struct owner_memory;
struct rate_limit;
struct share_pool;

#define SERVER_ACCEPT_BATCH                                                                        \
	64 /* so many connections may be open beyond the limit, which were cut or just came */

struct server {
	atomic_uint refs; /* server_open's, and one for each request */
	struct server_config config;
	struct guard *guard, *local_guard; /* the second for clients that came by a path */
	struct rate_limit *failures;	   /* wrong tokens */
	struct router *router;
	struct workers *workers;
	struct fair_queue *fair_queue;
	struct owner_memory
		*memory;	   /* what lies there for clients; until the last request is gone */
	struct event_loop *poller; /* serves what the library does not */
	struct loop **loops;
	unsigned loop_count;

	pthread_mutex_t accept_lock; /* held while accepting; comes before all others */
	struct listener listener;    /* its fd is -1 once it is closed */
	struct listener local;	     /* so is that of this one, also if there never was one */
	struct watch *listen_watch, *local_watch;
	struct timer *listen_timer;
	uint64_t shortage_logged_ms; /* when a want of descriptors was; 0: never */
	atomic_uint connections;     /* open ones, also those that were cut and are about to end */
	struct share_pool *strangers, *owners; /* places of connections: by address, by owner */
	atomic_bool accept_waits;	       /* for a connection to end */
	pthread_mutex_t clients_lock;
	struct connection *clients;
	struct timer *sweep_timer;

	struct answer_stats stats;
	uint64_t id_seed;
	atomic_uint_fast64_t id_next;
	atomic_uint evictions;	    /* how many tokens were cut off */
	struct share_pool *readers; /* handlers inside request_read(), by owner */
	atomic_bool closing;	    /* no new requests; running ones may finish */
	atomic_bool aborting;	    /* nothing may be suspended any more */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *requests;
	unsigned running; /* past their headers and not over */
	struct websocket_list websockets;
};

struct server *server_ref(struct server *server);
void server_unref(struct server *server);

/* The list of requests, and how many of them server_close() waits for. */
void server_add_request(struct server *server, struct request *req);
void server_count_request(struct server *server, struct request *req);
void server_remove_request(struct server *server, struct request *req);

/* A connection has ended: there is room for another. */
void server_connection_left(struct server *server);

/* Which numbers two texts get nobody outside can know. */
uint64_t server_hash(uint64_t seed, const char *text);

/* What stands for the owner of a request whose sender is known. */
uint64_t server_owner_key(const struct server *server, const struct principal *principal);
