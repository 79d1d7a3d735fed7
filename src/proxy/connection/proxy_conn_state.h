/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's connection, and its connection to the app. One thread does all of it, but for `find`,
 * which runs on a worker while the thread leaves the connection alone.
 */
#pragma once

#include "http/buffered_socket.h"
#include "http/head_rules.h"
#include "http/message.h"
#include "http/workers.h"
#include "proxy/message/request_check.h"
#include "proxy/proxy_config.h"

#define PROXY_CONN_HEAD_MS 10000 /* for the head of a request, once it has begun */

struct tls_peer;
struct share;
struct proxy_loop;

enum proxy_conn_state {
	PROXY_CONN_HEAD,    /* the client's next request is to come */
	PROXY_CONN_FINDING, /* the request has a head, and its way is being found */
	PROXY_CONN_LATER,   /* ... to be asked for again */
	PROXY_CONN_RELAY,   /* request and answer go their ways */
	PROXY_CONN_TUNNEL,  /* bytes go both ways until one side ends */
	PROXY_CONN_LAST,    /* what waits for the client is sent, then it ends */
	PROXY_CONN_OVER,
};

struct proxy_conn {
	struct proxy_conn *prev, *next; /* in its loop */
	struct proxy_loop *loop;
	const struct proxy_config *config;
	enum proxy_conn_state state;
	struct buffered_socket client, app; /* it is their owner */
	char address[64];
	struct tls_peer *tls_peer; /* NULL: it does not speak TLS */
	uint64_t source;	   /* http/address_key.h */
	bool is_local, is_excess;  /* of this machine; one too many of its source */
	/* Its places: of its source; and, by proxy_limits_claim(), of what it leads to, and of whose that is. */
	struct share *source_share, *key_share, *owner_share;

	struct message request, response;
	struct proxy_way way;
	char host[HEAD_RULES_HOST_MAX],
		credentials[REQUEST_CHECK_DIGEST_LEN]; /* of the way: and what was shown for it */
	bool is_upgrade, is_reused, has_answer_begun, wants_close, has_said_end;
	unsigned hints; /* answers of the kind 1xx that came */

	struct work_item item;
	struct post found;			   /* for its loop */
	void (*ready)(void *arg, uint32_t events); /* something happened to one of its sockets */
	struct proxy_conn *next_waiting;	   /* in the wake queue */
	uint64_t asked_ms, due_ms, moved_ms, used_ms;
};

/* Frees it, and closes what is open. */
void proxy_conn_free(struct proxy_conn *conn);

/* The other socket of its connection. */
struct buffered_socket *proxy_conn_other(struct buffered_socket *side);

/* It is over, and dropped when what moves it returns. */
void proxy_conn_end(struct proxy_conn *conn);

/* Waits for the next request of the client. */
void proxy_conn_begin(struct proxy_conn *conn);

/* Has the way of its request found by a worker, maybe once more. */
void proxy_conn_ask(struct proxy_conn *conn);

/* Whether the client has closed after its request, so that no one reads the answer. */
bool proxy_conn_has_client_left(struct proxy_conn *conn);
