/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the outside, for flow.c, which leads it through its life, flow_dial.c, which finds its way, and
 * flow_relay.c, which passes on.
 */
#pragma once

#include "base/buf.h"
#include "egress/egress_private.h"
#include "egress/errand.h"

#define FLOW_DIAL_TIMEOUT_MS 10000

enum flow_state { FLOW_HEAD, FLOW_RESOLVING, FLOW_DIALLING, FLOW_RELAYING, FLOW_FAREWELL };

struct flow {
	struct sluice *sluice;
	struct flow *next, **at;
	struct source client, upstream;
	enum flow_state state;
	struct authority target;
	bool is_proxied;  /* the client knows that we are here, and can be told */
	bool is_tunnel;	  /* by CONNECT */
	bool is_screened; /* the first bytes were looked at, or need not be */
	bool is_throttled;
	bool waits_for_time;
	struct dns_addresses addresses;
	size_t next_address;
	struct address dialled;
	struct lookup *lookup;
	struct errand *errand; /* NULL: bytes are relayed as they are */
	struct buf first;      /* what was read of the client, and goes out before all else */
	size_t head_checked;   /* of it, as message.checked */
	struct lane out, in;
	uint64_t deadline_ms; /* 0: none */
};

/* One of its sockets is ready, or it is its turn. */
void flow_step(void *flow);

/* When it is given up, or the next address is tried; 0: never. */
void flow_set_deadline(struct flow *flow, uint64_t ms);

/* Whether it waits for time may have changed. */
void flow_update_wait(struct flow *flow);

/* Ends it: with all that was said delivered; for a client that is to read our last words first; or at once, so that
 * nobody takes what came for the whole. It may be gone afterwards. */
void flow_end(struct flow *flow);
void flow_begin_farewell(struct flow *flow);
void flow_cut(struct flow *flow);

/* Tells a client that knows of us; one that does not sees its connection reset. It may be gone afterwards. */
void flow_turn_away(struct flow *flow, const char *status, const char *text);

/* The same for want of a rule, which is noted. */
void flow_deny(struct flow *flow, const char *rule, enum egress_denial_reason reason);

/* The note alone. */
void flow_note_denial(struct flow *flow, const char *rule, enum egress_denial_reason reason);

/* --- flow_relay.c --- */

/* Moves what can be moved. */
void flow_relay_bytes(struct flow *flow);
void flow_relay_requests(struct flow *flow);

/* --- flow_dial.c --- */

/* Its target is known: judges it, and goes there. */
void flow_dial_start(struct flow *flow);

/* Dials the next address that may be; if there is none, the client is told. */
void flow_dial_next(struct flow *flow);

/* Whether this address may be dialled for it. */
bool flow_dial_may(const struct flow *flow, struct address address);
