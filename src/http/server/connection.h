/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we know of a client's connection beside what libmicrohttpd knows.
 *
 * The library misses two things, which the poller sees for it. A hangup: it reads edge-triggered and
 * takes a short read for the last, so an end that arrives together with data is noticed only when the
 * connection times out; and while suspended it does not look at all. And a client that sends its
 * headers or its body byte by byte: for the library every byte is a sign of life.
 *
 * Connections are limited in number, and each has a place in a pool (base/share_pool.h): that of strangers until a
 * request of it was authorized, then that of whoever sent the request. Where there is no place, another connection
 * gives way: of strangers, one of the address that has most of them; of an owner, one of its own, and of all owners
 * one of whoever has most, if it is without a request or hardly sends a body. Of these it is the one that has been so
 * for the longest. So neither those who only hold connections open nor one owner keep others out.
 *
 * A client that only shuts its sending side counts as gone, as it does for the library.
 */
#pragma once

#include "event/timer.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CONNECTION_HEAD_MS  10000 /* how long headers may take */
#define CONNECTION_BODY_MS  30000 /* how long this much of a body may take, or its rest: */
#define CONNECTION_BODY_MIN (16u * 1024)
#define CONNECTION_SLOW_MS  5000 /* without that much of a body it may give way to another */
#define CONNECTION_LEAVE_MS 2000 /* for a stranger that was refused: to read why, and leave */
#define CONNECTION_SWEEP_MS 2000
#define CONNECTION_NUDGE_MS 10

struct arrival;
struct loop;
struct tls_peer;
struct request;
struct server;
struct share;

struct connection {
	atomic_uint refs; /* the library's, and those of its watch and timer */
	struct server *server;
	struct loop *loop;
	char peer[INET6_ADDRSTRLEN];	/* its address, without the port */
	uint64_t source;		/* http/address_key.h */
	bool is_unix;			/* it came by a path, which only the trusted reach */
	struct tls_peer *tls_peer;	/* NULL: it does not speak TLS */
	struct connection *prev, *next; /* in server->clients, under its lock */
	bool is_listed;			/* there; under the same lock */

	pthread_mutex_t lock;
	int sock; /* -1 once it is closed */
	bool hung_up;
	struct request *request;   /* the one being served; not counted, it leaves in time */
	struct watch *watch;	   /* the poller's, for a hangup; NULL: there is none */
	struct timer *nudge_timer; /* NULL until the client hung up */
	unsigned nudges;
	bool is_upgraded; /* no longer HTTP; only the connection's thread */
	bool is_cut;	  /* by us */
	/* Its place, and whether that is an owner's. Changed under this lock and that of the clients. */
	struct share *share; /* NULL: it is about to end, or a WebSocket has the place */
	atomic_bool is_known;
	uint64_t idle_since_us; /* fine enough to tell who came first */

	/* Of the sweep, and the number of requests whose headers were whole. */
	unsigned heads, heads_seen;
	uint64_t bytes_seen;
	uint64_t head_since_ms; /* 0: no headers are on their way */
	uint64_t body_since_ms; /* 0: no body is waited for */
};

/* Both on the connection's thread, when it begins (and takes the TLS peer) and before its descriptor is closed. */
struct connection *connection_open(
	struct server *server, struct loop *loop, int sock, struct arrival *arrival);
void connection_close(struct connection *connection);

/* For requests, which may outlive it. */
struct connection *connection_ref(struct connection *connection);
void connection_unref(struct connection *connection);

/* A request on it was authorized: it is this owner's from now on. -EDQUOT: that has enough; -EAGAIN: all have. */
int connection_claim(struct server *server, struct connection *connection, uint64_t owner,
	bool is_operator) must_check;
bool connection_is_known(const struct connection *connection);

/* Its place goes to the caller: what it becomes counts in its stead. */
struct share *connection_take_share(struct server *server, struct connection *connection);

/* A request begins, has all its headers, is over. */
void connection_begin(struct connection *connection, struct request *req);
void connection_pass_head(struct connection *connection);
void connection_end(struct connection *connection);

/*
 * The request of a loop whose headers are whole and which nobody has looked at yet; NULL if there is none.
 * Only on the loop's thread, on which there is never more than one.
 */
struct request *connection_unread_head(struct server *server, const struct loop *loop);

/* Cuts those whose headers or bodies take too long, or whose token has expired meanwhile. */
void connection_sweep(struct server *server);

/* Cuts those whose request was admitted with a token; but for one request. Then all goes on as if the
 * client had left. */
void connection_evict(struct server *server, const char *id, const struct request *spared);

/* Descriptors are short: cuts a connection of a stranger, else one that is idle. */
void connection_give_way(struct server *server);
