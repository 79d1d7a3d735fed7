/* SPDX-License-Identifier: Apache-2.0 */
/* Where a URL or a request leads: a name or an address, and a port. */
#pragma once

#include "model/address.h"
#include "model/sandbox/egress_rule.h"

struct authority {
	char name[EGRESS_NAME_MAX]; /* as egress_name_read leaves it; empty: an address */
	struct address address;
	uint16_t port;
};

#define AUTHORITY_TEXT_MAX (EGRESS_NAME_MAX + 8)

/*
 * Reads host or host:port, an IPv6 address in brackets; no user. A default_port of 0: there must be one.
 * -EINVAL for what is none.
 */
int authority_read(const char *text, size_t len, uint16_t default_port,
	struct authority *ret_authority) must_check;

/* host:port, or the host alone if the port is usual_port (0: none is). */
void authority_format(
	const struct authority *authority, uint16_t usual_port, char text[AUTHORITY_TEXT_MAX]);

bool authority_equals(const struct authority *one, const struct authority *other);
