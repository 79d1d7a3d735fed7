/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from a sandbox to the outside. egress_conn.c has its states, egress_conn_dial.c
 * resolves and dials, egress_conn_relay.c relays.
 */
#pragma once

#include "base/buf.h"
#include "egress/egress_private.h"
#include "egress/secret/secret_proxy.h"

#define EGRESS_CONN_DIAL_TIMEOUT_MS 10000

enum egress_conn_state {
	EGRESS_CONN_HEAD,
	EGRESS_CONN_RESOLVING,
	EGRESS_CONN_DIALLING,
	EGRESS_CONN_RELAYING,
	EGRESS_CONN_CLOSING
};

struct egress_conn {
	struct sandbox_egress *sandbox;
	struct egress_conn *next, **at;
	struct share
		*share; /* its place in the pool; NULL: there was none, and the client is told */
	struct source client, upstream;
	enum egress_conn_state state;
	struct authority target;
	bool is_proxied;  /* the client speaks to a proxy, so it can be told */
	bool is_tunnel;	  /* by CONNECT */
	bool is_screened; /* the ClientHello was checked, or need not be */
	bool is_throttled;
	bool waits_for_time;
	struct dns_addresses addresses;
	size_t next_address;
	struct address dialled;
	struct lookup *lookup;
	struct secret_proxy *secret_proxy; /* NULL: bytes are relayed as they are */
	struct buf first;		   /* bytes read from the client that go out first */
	size_t head_checked;		   /* bytes of `first`, as message.checked */
	struct splice_pipe out, in;
	uint64_t deadline_ms; /* 0: none */
};

/* Called when a socket is ready, or when the thread's queue comes to this connection. */
void egress_conn_step(void *conn);

/* Sets when the connection is given up, or the next address is tried; 0: never. */
void egress_conn_set_deadline(struct egress_conn *conn, uint64_t ms);

/* Tells the thread whether the connection needs ticks, if that has changed. */
void egress_conn_update_wait(struct egress_conn *conn);

/*
 * Ends the connection: after all bytes were delivered; after the client has read a last reply; or
 * with a reset, so that no peer takes a part for the whole. The connection may be freed afterwards.
 */
void egress_conn_end(struct egress_conn *conn);
void egress_conn_begin_close(struct egress_conn *conn);
void egress_conn_cut(struct egress_conn *conn);

/*
 * Refuses: a proxy client gets a reply, any other a reset. The connection may be freed afterwards.
 */
void egress_conn_turn_away(struct egress_conn *conn, const char *status, const char *text);

/* Refuses because no rule allows it, and notes the denial. */
void egress_conn_deny(struct egress_conn *conn, const char *rule, enum egress_denial_reason reason);

/* Only notes the denial. */
void egress_conn_note_denial(
	struct egress_conn *conn, const char *rule, enum egress_denial_reason reason);

/* --- egress_conn_relay.c --- */

/* Moves what can be moved. */
void egress_conn_relay_bytes(struct egress_conn *conn);
void egress_conn_relay_requests(struct egress_conn *conn);

/* --- egress_conn_dial.c --- */

/* The target is known: checks it against the policy, then resolves and dials. */
void egress_conn_dial_start(struct egress_conn *conn);

/* Dials the next allowed address; without one it tells the client. */
void egress_conn_dial_next(struct egress_conn *conn);

/* Whether the policy lets this connection dial the address. */
bool egress_conn_dial_may(const struct egress_conn *conn, struct address address);
