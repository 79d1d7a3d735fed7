/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allowlist may hold: a host name, one with `*.` before it (all names below, not itself), an
 * address or a network, each with `:port` behind it if only that port is meant (an IPv6 address then
 * stands in brackets).
 */
#pragma once

#include "model/address.h"

#define EGRESS_NAME_MAX 254 /* with its NUL */
#define EGRESS_RULE_MAX 280

enum egress_rule_kind { EGRESS_NAME, EGRESS_NAMES_BELOW, EGRESS_NETWORK };

struct egress_rule {
	enum egress_rule_kind kind;
	uint16_t port;		    /* 0: any */
	char name[EGRESS_NAME_MAX]; /* as egress_name_read leaves it, without `*.` */
	struct address network;
	unsigned prefix_len; /* of 128: of IPv4 from ADDRESS_V4_PREFIX on */
};

int egress_rule_parse(const char *text, struct egress_rule *ret_rule) must_check;
bool egress_rule_is_valid(const char *text);

/* name must have come through egress_name_read. */
bool egress_rule_names(const struct egress_rule *rule, const char *name);
bool egress_rule_holds(const struct egress_rule *rule, struct address address);

/* Whether the rule holds no other address than such. Names are public: what they lead to is judged. */
bool egress_rule_is_public(const struct egress_rule *rule);

/*
 * The one form in which names are compared: lower case, no dot at the end, letters, digits, - and _ in
 * labels of 1 to 63, not a number. Anything else is -EINVAL: what two parsers could read differently
 * is no name.
 */
int egress_name_read(const char *text, size_t len, char ret_name[EGRESS_NAME_MAX]) must_check;
