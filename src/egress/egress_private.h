/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of sluices; for the files of src/egress only. All under the lock of the dispatcher. */
#pragma once

#include "egress/dispatcher.h"
#include "egress/egress.h"
#include "egress/lane.h"
#include "egress/policy.h"
#include "egress/resolver.h"
#include "egress/stand_in.h"
#include "model/authority.h"

#include <pthread.h>
#include <stdatomic.h>

struct flow;
struct tls_client;
struct tls_trust;
struct dns_ask;
struct dns_stream;

/* A thread, and what those whom it serves share. */
struct station {
	struct egress *egress;
	struct dispatcher *dispatcher;
	struct resolver *resolver;
	struct pipes pipes;
	struct sluice *sluices;
	unsigned connections;
};

struct egress {
	struct egress_config config;
	unsigned max_connections; /* of all sandboxes together */
	atomic_uint connections;
	atomic_uint next_station;
	pthread_mutex_t trust_lock;
	struct tls_trust *trust; /* made when it is first needed */
	unsigned station_count;
	struct station stations[];
};

struct contact {
	char rule[EGRESS_NAME_MAX + 8];
};

struct sluice {
	atomic_int refs;
	struct station *station;
	struct sluice *next;
	char sandbox_id[ID_LEN + 1];
	struct owner owner;
	struct source proxy, dns, dns_stream;
	bool is_closed;
	bool has_v6;	 /* its connections over IPv6 come here too */
	bool is_stalled; /* there are clients that could not be accepted for want of descriptors */

	struct policy *policy;
	struct sluice_limits limits;
	int64_t allowance; /* bytes that may be moved now, if bandwidth is limited */
	uint64_t refilled_ms;

	struct stand_ins stand_ins;
	struct flow *flows;
	struct dns_ask *asks;
	struct dns_stream *dns_streams;
	unsigned ask_count, dns_stream_count, errand_count;
	unsigned lookup_count; /* kept by the resolver */

	struct sluice_counters counters;
	struct egress_denial *denials; /* once there is one; in no order; count 0: free */
	uint64_t told_since_ms;	       /* when the present count began */
	unsigned told_count;
	struct contact *contacts;
	size_t contact_count;
};

/* Begins to speak TLS to a server, which must have a certificate from somebody whom this machine trusts. */
int egress_open_tls(struct egress *egress, int fd, const struct authority *server,
	struct tls_client **ret_client) must_check;

/* Whether the policy allows to ask for it; why not. */
bool sluice_judge(const struct sluice *sluice, const struct authority *target,
	enum egress_denial_reason *ret_reason);

/*
 * The secret that requests to a target are given, to be let go of, if the policy lets the sandbox use
 * one: the target is <name>.internal, or the server of a secret itself if that speaks plain HTTP.
 */
const struct vault_secret *sluice_find_secret(
	const struct sluice *sluice, const struct authority *target);

/* Whether a name is one of such a target, with some port. */
bool sluice_serves_name(const struct sluice *sluice, const char *name);

/* Notes a refusal of what (host:port, or a name), and which rule would allow it. */
void sluice_deny(struct sluice *sluice, const char *what, const char *rule,
	enum egress_denial_reason reason);

/* Notes that a target was reached. */
void sluice_note_contact(struct sluice *sluice, const struct authority *target);

/* How many bytes may be moved now; they are to be taken off with sluice_spend. */
size_t sluice_budget(struct sluice *sluice, size_t wanted);
void sluice_spend(struct sluice *sluice, size_t bytes);

/* Once in a while, as long as somebody waits for time. */
void sluice_tick(struct sluice *sluice, uint64_t now_ms);

/* --- flow.c: connections --- */

/* Serves a connection from inside; takes the socket over. */
void flow_accept(struct sluice *sluice, int fd);
void flow_tick_all(struct sluice *sluice, uint64_t now_ms);

/* Cuts those that the policy does not allow any more, or all of them. */
void flow_review_all(struct sluice *sluice);
void flow_cut_all(struct sluice *sluice);

/* --- dns_service.c: questions --- */

void dns_service_read(void *sluice);		       /* the UDP socket has questions */
void dns_service_accept(void *sluice);		       /* the TCP socket has clients */
void dns_service_serve(struct sluice *sluice, int fd); /* one of them; takes the socket over */
void dns_service_close(struct sluice *sluice);
