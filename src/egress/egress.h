/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of sandboxes. A sandbox has no interface but lo; all its TCP ends at a socket that the
 * keeper opened inside and gave to us (wire/egress.h), and its questions of DNS at another. Here they
 * are judged by the sandbox's policy and made again, by an unprivileged daemon, on the host's network.
 *
 * A sluice is the way out of one sandbox. It is served by one of a few threads. Names are answered with
 * addresses that stand for them (stand_in.h), so that a connection is judged by the name that the
 * program asked for; the name is resolved here, and the address that was checked is the one dialled.
 */
#pragma once

#include "base/err.h"
#include "egress/vault.h"
#include "model/egress_rule.h"
#include "model/id.h"

#include <jansson.h>

struct egress;
struct sluice;

enum egress_denial_reason {
	EGRESS_NOT_ALLOWED,	/* no rule allows it */
	EGRESS_PRIVATE_ADDRESS, /* the name leads to an address that only a rule for it could allow */
	EGRESS_OTHER_NAME,	/* TLS asked for another name than the one that was allowed */
	EGRESS_FORGOTTEN_NAME, /* the address stands for no name any more */
	EGRESS_TOO_MANY,       /* the limit of connections is reached */
	EGRESS_DENIAL_REASON_COUNT,
};

const char *egress_denial_reason_name(enum egress_denial_reason reason);

/* Something that was tried and refused. */
struct egress_denial {
	char target[EGRESS_NAME_MAX +
		    8];			/* host:port, or the name alone if it was only asked for */
	char rule[EGRESS_NAME_MAX + 8]; /* what in an allowlist would allow it; may be empty */
	enum egress_denial_reason reason;
	int64_t at_ms; /* the last time, by the wall clock */
	uint64_t count;
};

struct egress_config {
	const char *resolver; /* name servers, as for resolver_open; NULL: the host's */
	struct vault *vault;  /* borrowed: the secrets that sandboxes may use; NULL: none */
	/* Called when something is refused that was not refused before; must not block or call back. */
	void (*denied)(void *arg, const char *sandbox_id, const struct egress_denial *denial);
	void *arg;
};

int egress_open(const struct egress_config *config, struct egress **ret_egress, struct err *err)
	must_check;

/* Reads again who may sign certificates of servers. Connections that are open go on. */
void egress_reload_trust(struct egress *egress);

/* All sluices must have been closed. */
void egress_close(struct egress *egress);

/* What leads to a sluice; the sockets are taken over, also on failure. */
struct sluice_sockets {
	int proxy_fd, dns_fd, dns_stream_fd;
};

struct sluice_limits {
	unsigned connections;
	uint64_t bandwidth; /* bytes a second, both ways together; 0: no limit */
};

/* Whose way out it is. */
struct sluice_party {
	const char *sandbox_id;
	const struct owner *owner; /* whose secrets it may use */
};

/* Opens the sluice of a sandbox under the policy of its `network`; a reference to it. */
int sluice_open(struct egress *egress, const struct sluice_party *party,
	const struct sluice_sockets *sockets, const json_t *network,
	const struct sluice_limits *limits, struct sluice **ret_sluice, struct err *err) must_check;
struct sluice *sluice_ref(struct sluice *sluice);
void sluice_unref(struct sluice *sluice);

/* Cuts all connections and serves no more. */
void sluice_close(struct sluice *sluice);

/* Sets another policy, at once: connections that it does not allow are cut. */
void sluice_change(
	struct sluice *sluice, const json_t *network, const struct sluice_limits *limits);

struct sluice_counters {
	uint64_t tx_bytes, rx_bytes; /* out of and into the sandbox */
	uint64_t connections;	     /* that were made */
	uint64_t denied;
	unsigned open_connections;
};

void sluice_count(struct sluice *sluice, struct sluice_counters *ret_counters);

#define SLUICE_DENIALS_MAX  64
#define SLUICE_CONTACTS_MAX 256

/* The last refused, newest first; how many. */
size_t sluice_denials(struct sluice *sluice, struct egress_denial ret_denials[SLUICE_DENIALS_MAX]);

/* What was reached, as rules that would allow it; how many. */
size_t sluice_contacts(
	struct sluice *sluice, char ret_rules[SLUICE_CONTACTS_MAX][EGRESS_NAME_MAX + 8]);
