/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves names by asking the machine's name servers, without a thread for each question. It
 * caches answers for a moment, so that the connection after a DNS question need not wait again. It
 * asks for IPv4 addresses, and if there are none for IPv6; the other way round on a machine without
 * a route to the IPv4 internet. It belongs to an egress thread: all calls are under its lock.
 */
#pragma once

#include "egress/dns/dns_message.h"
#include "egress/egress_thread.h"

struct resolver;
struct lookup;
struct share_pool;

/*
 * result: 0 with at least one address, -ENOENT if the name has none, else -errno. Never called from
 * within resolver_ask().
 */
typedef void (*resolver_answer_fn)(void *arg, int result, const struct dns_addresses *addresses);

/* The sandbox that asks; it outlives its look-ups. */
struct resolver_asker {
	uint64_t owner;
	bool is_operator;
	unsigned count; /* of look-ups under way; kept by the resolver */
};

/* lookups: places for those under way, which other resolvers share (borrowed). servers: addresses with or without :port (of IPv6 in brackets then), separated by commas; empty: those of /etc/resolv.conf. */
int resolver_open(struct egress_thread *thread, const char *servers, struct share_pool *lookups,
	struct resolver **ret_resolver, struct err *err) must_check;

/* Ends all lookups without an answer. */
void resolver_close(struct resolver *resolver);

/*
 * Asks for a name (as egress_name_read leaves it). 1: known, *ret_addresses is set. 0: the answer comes,
 * *ret_lookup is valid until then. -EAGAIN: too many questions are under way, of all, of one owner or of
 * one sandbox.
 */
int resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *ret_addresses,
	struct resolver_asker *asker, resolver_answer_fn answer, void *arg,
	struct lookup **ret_lookup) must_check;

void lookup_cancel(struct lookup *lookup);

/* Sends a question again if no answer came in time. */
void resolver_tick(struct resolver *resolver, uint64_t now_ms);
