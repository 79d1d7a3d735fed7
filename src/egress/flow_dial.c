/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a connection: its name is resolved, and its addresses are judged and dialled, one by one. */
#include "base/fd.h"
#include "egress/flow_private.h"

#include <errno.h>
#include <sys/socket.h>

bool flow_dial_may(const struct flow *flow, struct address address)
{
	const struct policy *policy = flow->sluice->policy;

	if (flow->errand)
		return errand_secret(flow->errand)->record.is_trusted ||
		       policy_allows_server(policy, address, flow->target.port);
	return flow->target.name[0] ? policy_allows_behind_name(policy, address, flow->target.port)
				    : policy_allows_address(policy, address, flow->target.port);
}

static int connect_to(struct flow *flow, struct address address)
{
	struct dispatcher *dispatcher = flow->sluice->station->dispatcher;
	struct sockaddr_storage peer;
	socklen_t len = address_to_socket(address, flow->target.port, &peer);

	flow->upstream = (struct source){
		.fd = socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
		.ready = flow_step,
		.owner = flow};
	if (flow->upstream.fd < 0)
		return -errno;
	if (connect(flow->upstream.fd, (const struct sockaddr *)&peer, len) < 0 &&
		errno != EINPROGRESS) {
		int r = -errno;

		fd_close(take_fd(&flow->upstream.fd));
		return r;
	}
	flow->dialled = address;
	return dispatcher_add(dispatcher, &flow->upstream);
}

void flow_dial_next(struct flow *flow)
{
	struct authority refused = {.port = flow->target.port};
	char rule[EGRESS_NAME_MAX + 8] = "";

	while (flow->next_address < flow->addresses.count) {
		struct address address = flow->addresses.list[flow->next_address++];

		if (!flow_dial_may(flow, address)) {
			refused.address = address;
			authority_format(&refused, 0, rule);
		} else if (connect_to(flow, address) == 0) {
			flow->state = FLOW_DIALLING;
			flow_set_deadline(flow, FLOW_DIAL_TIMEOUT_MS);
			return;
		}
	}
	if (rule[0])
		flow_deny(flow, rule, EGRESS_PRIVATE_ADDRESS);
	else
		flow_turn_away(flow, "502 Bad Gateway", "the server cannot be reached");
}

static void on_addresses(void *arg, int result, const struct dns_addresses *addresses)
{
	struct flow *flow = arg;

	flow->lookup = NULL;
	if (result < 0) {
		flow_turn_away(flow, "502 Bad Gateway", "the name cannot be resolved");
		return;
	}
	flow->addresses = *addresses;
	flow_dial_next(flow);
}

void flow_dial_start(struct flow *flow)
{
	enum egress_denial_reason reason;
	char rule[EGRESS_NAME_MAX + 8];
	int r;

	if (!flow->errand && !sluice_judge(flow->sluice, &flow->target, &reason)) {
		authority_format(&flow->target, 0, rule);
		flow_deny(flow, rule, reason);
		return;
	}
	flow->state = FLOW_RESOLVING;
	flow_set_deadline(flow, 0);
	if (!flow->target.name[0]) {
		flow->is_screened = true; /* an address was allowed, whatever it is called */
		flow->addresses =
			(struct dns_addresses){.list = {flow->target.address}, .count = 1};
		flow_dial_next(flow);
		return;
	}
	r = resolver_ask(flow->sluice->station->resolver, flow->target.name, &flow->addresses,
		&flow->sluice->lookup_count, on_addresses, flow, &flow->lookup);
	if (r == 1)
		flow_dial_next(flow);
	else if (r < 0)
		flow_turn_away(flow, "502 Bad Gateway", "the name cannot be resolved");
}
