/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs of egress, for the files of src/egress only. The lock of the egress thread guards all
 * of them.
 */
#pragma once

#include "egress/connection/splice_pipe.h"
#include "egress/dns/fake_address.h"
#include "egress/dns/resolver.h"
#include "egress/egress_thread.h"
#include "egress/egress_types.h"
#include "egress/policy.h"
#include "model/access/authority.h"
#include "model/id.h"

#include <pthread.h>
#include <stdatomic.h>

struct egress_conn;
struct share;
struct share_pool;
struct tls_client;
struct tls_trust;
struct dns_ask;
struct dns_stream;

/* A thread, and what the sandboxes that it serves share. */
struct egress_worker {
	struct egress *egress;
	struct egress_thread *thread;
	struct resolver *resolver;
	struct pipes pipes;
	struct sandbox_egress *sandboxes;
	unsigned connections;
};

struct egress {
	struct egress_config config;
	struct share_pool *connections, *pipes, *lookups; /* of all sandboxes together, by owner */
	unsigned max_per_sandbox; /* connections: half of what its owner may have */
	atomic_uint next_worker;
	pthread_mutex_t trust_lock;
	struct tls_trust *trust; /* made when it is first needed */
	unsigned worker_count;
	struct egress_worker workers[];
};

struct contact {
	char rule[EGRESS_NAME_MAX + 8];
};

struct sandbox_egress {
	atomic_int refs;
	struct egress_worker *worker;
	struct sandbox_egress *next;
	char sandbox_id[ID_LEN + 1];
	char hostname[EGRESS_NAME_MAX];
	struct owner owner;
	uint64_t owner_key;
	bool is_operators;
	struct source proxy, dns, dns_stream;
	bool is_closed;
	bool has_v6;	 /* connections over IPv6 come to `proxy` too */
	bool is_stalled; /* clients wait that could not be accepted for want of descriptors */

	struct policy *policy;
	struct sandbox_egress_limits limits;
	int64_t allowance; /* bytes that may be moved now, if bandwidth is limited */
	uint64_t refilled_ms;

	struct fake_addresses fake_addresses;
	struct egress_conn *conns;
	struct dns_ask *asks;
	struct dns_stream *dns_streams;
	unsigned ask_count, dns_stream_count, secret_proxy_count;
	struct resolver_asker asker;

	struct sandbox_egress_counters counters;
	struct egress_denial *denials; /* NULL until the first; in no order; count 0: free */
	uint64_t told_since_ms;	       /* start of the second that told_count counts */
	unsigned told_count;
	struct contact *contacts;
	size_t contact_count;
};

/*
 * Begins TLS with a server, whose certificate must be signed by an authority that this machine
 * trusts.
 */
int egress_open_tls(struct egress *egress, int fd, const struct authority *server,
	struct tls_client **ret_client) must_check;

/* Whether the policy allows the target; if not, why. */
bool sandbox_egress_judge(const struct sandbox_egress *sandbox, const struct authority *target,
	enum egress_denial_reason *ret_reason);

/*
 * The secret for requests to a target, if the policy lets the sandbox use one; the caller releases
 * it. The target is <name>.internal, or the server of a secret itself if that speaks plain HTTP.
 */
const struct secret_cache_secret *sandbox_egress_find_secret(
	const struct sandbox_egress *sandbox, const struct authority *target);

/* Whether sandbox_egress_find_secret() has a secret for the name with some port. */
bool sandbox_egress_serves_name(const struct sandbox_egress *sandbox, const char *name);

/* Notes a refusal of what (host:port, or a name), and which rule would allow it. */
void sandbox_egress_deny(struct sandbox_egress *sandbox, const char *what, const char *rule,
	enum egress_denial_reason reason);

/* Notes what came of looking up a name that is allowed: 0, -ENOENT if there is none, or -errno. */
void sandbox_egress_note_lookup(struct sandbox_egress *sandbox, const char *name, int result);

/* Notes that a target was reached. */
void sandbox_egress_note_contact(struct sandbox_egress *sandbox, const struct authority *target);

/* How many bytes may be moved now. The caller reports moved bytes with sandbox_egress_spend(). */
size_t sandbox_egress_budget(struct sandbox_egress *sandbox, size_t wanted);
void sandbox_egress_spend(struct sandbox_egress *sandbox, size_t bytes);

/* Called every EGRESS_THREAD_TICK_MS while a connection waits for time. */
void sandbox_egress_tick(struct sandbox_egress *sandbox, uint64_t now_ms);

/* --- egress_conn.c: connections --- */

/* Serves a connection from inside; takes the socket over. */
void egress_conn_accept(struct sandbox_egress *sandbox, int fd);
void egress_conn_tick_all(struct sandbox_egress *sandbox, uint64_t now_ms);

/* Cuts connections that the policy does not allow any more; or all of them. */
void egress_conn_review_all(struct sandbox_egress *sandbox);
void egress_conn_cut_all(struct sandbox_egress *sandbox);

/* --- dns_service.c: questions --- */

void dns_service_read(void *sandbox);	/* the UDP socket has questions */
void dns_service_accept(void *sandbox); /* the TCP socket has clients */
void dns_service_serve(
	struct sandbox_egress *sandbox, int fd); /* one of them; takes the socket over */
void dns_service_close(struct sandbox_egress *sandbox);
