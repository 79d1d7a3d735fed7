/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the addresses of names by asking the machine's name servers, without a thread for each question.
 * Answers are remembered for a moment, so that the connection which follows a question of DNS need not
 * wait for it again. A name is asked for addresses of IPv4, and if it has none for those of IPv6; the other way
 * round on a machine that has no way to the internet of IPv4. A part of its dispatcher: everything is called under its lock.
 */
#pragma once

#include "egress/dispatcher.h"
#include "egress/dns_message.h"

struct resolver;
struct lookup;

/* 0 with the addresses (at least one), -ENOENT if the name has none, else -errno; never from within
 * resolver_ask. */
typedef void (*resolver_answer_fn)(void *arg, int result, const struct dns_addresses *addresses);

/* servers: addresses with or without :port (of IPv6 in brackets then), separated by commas; empty: those of /etc/resolv.conf. */
int resolver_open(struct dispatcher *dispatcher, const char *servers,
	struct resolver **ret_resolver, struct err *err) must_check;

/* Ends all lookups without an answer. */
void resolver_close(struct resolver *resolver);

/*
 * Asks for a name (as egress_name_read leaves it). 1: known, *ret_addresses is set. 0: the answer comes,
 * *ret_lookup is valid until then. -EAGAIN: too many questions are under way, of all or of one sandbox:
 * *share is how many that has, which is kept here, and outlives them.
 */
int resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *ret_addresses,
	unsigned *share, resolver_answer_fn answer, void *arg, struct lookup **ret_lookup)
	must_check;

void lookup_cancel(struct lookup *lookup);

/* Asks again those that did not answer in time. */
void resolver_tick(struct resolver *resolver, uint64_t now_ms);
