/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Egress: the outgoing network traffic of sandboxes. A sandbox has no interface but lo. All its TCP
 * connections end at a socket that the keeper opened inside and gave to the daemon (wire/egress.h),
 * its DNS questions at another. The daemon, which is unprivileged, checks them against the
 * sandbox's policy and makes the connections on the host's network.
 *
 * A struct sandbox_egress is the egress of one sandbox; one of a few threads serves it. DNS answers
 * hold fake addresses (fake_address.h), so that a connection is judged by the name that the program
 * asked for. The name is resolved here, and the address that was checked is the one dialled.
 */
#pragma once

#include "base/err.h"
#include "egress/egress_types.h"
#include "egress/secret/secret_cache.h"
#include "model/id.h"

#include <jansson.h>

struct egress;
struct sandbox_egress;

int egress_open(const struct egress_config *config, struct egress **ret_egress, struct err *err)
	must_check;

/* Reads the trusted certificate authorities again. Open connections go on. */
void egress_reload_trust(struct egress *egress);

/* All sandbox egresses must have been closed. */
void egress_close(struct egress *egress);

/* Opens the egress of a sandbox under the policy in its `network`. Gives a reference. */
int sandbox_egress_open(struct egress *egress, const struct sandbox_egress_identity *party,
	const struct sandbox_egress_sockets *sockets, const json_t *network,
	const struct sandbox_egress_limits *limits, struct sandbox_egress **ret_egress,
	struct err *err) must_check;
struct sandbox_egress *sandbox_egress_ref(struct sandbox_egress *sandbox);
void sandbox_egress_unref(struct sandbox_egress *sandbox);

/* Cuts all connections and serves no more. */
void sandbox_egress_close(struct sandbox_egress *sandbox);

/* Sets another policy, cuts connections that it does not allow, and forgets refusals of what it allows. */
void sandbox_egress_change(struct sandbox_egress *sandbox, const json_t *network,
	const struct sandbox_egress_limits *limits);

/* It has another owner or name from now on; connections that are open stay. */
void sandbox_egress_give(struct sandbox_egress *sandbox, const struct sandbox_egress_identity *to);

void sandbox_egress_count(
	struct sandbox_egress *sandbox, struct sandbox_egress_counters *ret_counters);

/* Gives the last refusals, newest first. Returns how many. */
size_t sandbox_egress_denials(struct sandbox_egress *sandbox,
	struct egress_denial ret_denials[SANDBOX_EGRESS_DENIALS_MAX]);

/* Gives the rules that would allow what was reached. Returns how many. */
size_t sandbox_egress_contacts(struct sandbox_egress *sandbox,
	char ret_rules[SANDBOX_EGRESS_CONTACTS_MAX][EGRESS_NAME_MAX + 8]);
