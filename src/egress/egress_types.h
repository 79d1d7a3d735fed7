/* SPDX-License-Identifier: Apache-2.0 */
/* What egress is opened with, and what it says of a sandbox. */
#pragma once

#include "model/access/owner.h"
#include "model/sandbox/egress_rule.h"

#include <stdbool.h>
#include <stdint.h>

struct secret_cache;

enum egress_denial_reason {
	EGRESS_NOT_ALLOWED, /* no rule allows it */
	EGRESS_PRIVATE_ADDRESS, /* the name has an address that only a rule for that address could allow */
	EGRESS_OTHER_NAME,     /* TLS asked for another name than the one that was allowed */
	EGRESS_FORGOTTEN_NAME, /* the fake address has no name any more */
	EGRESS_TOO_MANY,       /* the limit of connections is reached */
	/* From here on nothing was refused, and no rule would help. */
	EGRESS_NO_SUCH_NAME, /* name servers say that there is none, or that it has no address */
	EGRESS_NO_ANSWER,    /* no name server answered, or not with sense */
	EGRESS_DENIAL_REASON_COUNT,
};

const char *egress_denial_reason_name(enum egress_denial_reason reason);

/* Whether something was refused; else a name that is allowed could not be looked up. */
static inline bool egress_denial_is_refusal(enum egress_denial_reason reason)
{
	return reason < EGRESS_NO_SUCH_NAME;
}

/* An attempt that was refused, or failed as no address was found. */
struct egress_denial {
	char target[EGRESS_NAME_MAX +
		    8];			/* host:port, or the name alone if it was only asked for */
	char rule[EGRESS_NAME_MAX + 8]; /* the rule that would allow it; may be empty */
	enum egress_denial_reason reason;
	int64_t at_ms; /* the last time, by the wall clock */
	uint64_t count;
};

struct egress_config {
	const char *resolver; /* name servers, as for resolver_open; NULL: the host's */
	struct secret_cache
		*secret_cache; /* borrowed: the secrets that sandboxes may use; NULL: none */
	/* Of all sandboxes together, shared by their owners (base/share_pool.h): connections, two descriptors each;
	 * pipes for bytes that a reader does not take, likewise; look-ups of names, one each. 0: 1024, 256, 512. */
	unsigned max_connections, max_pipes, max_lookups;
	/* Called when something is refused that was not refused before; must not block or call back. */
	void (*denied)(void *arg, const char *sandbox_id, const struct egress_denial *denial);
	void *arg;
};

/* The sockets inside the sandbox. sandbox_egress_open() takes them over, also on failure. */
struct sandbox_egress_sockets {
	int proxy_fd, dns_fd, dns_stream_fd;
};

struct sandbox_egress_limits {
	unsigned connections;
	uint64_t bandwidth; /* bytes a second, both ways together; 0: no limit */
};

/* The sandbox, and its owner. */
struct sandbox_egress_identity {
	const char *sandbox_id;
	const struct owner *owner; /* the owner whose secrets it may use */
	const char *hostname;	   /* what it calls itself: programs ask for the address of that */
};

struct sandbox_egress_counters {
	uint64_t tx_bytes, rx_bytes; /* out of and into the sandbox */
	uint64_t connections;	     /* that were made */
	uint64_t denied;
	unsigned open_connections;
};

#define SANDBOX_EGRESS_DENIALS_MAX  64
#define SANDBOX_EGRESS_CONTACTS_MAX 256
