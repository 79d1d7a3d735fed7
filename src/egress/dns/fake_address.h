/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake addresses: DNS answers give a sandbox an address that stands for a name, and when a program
 * connects to it, the name is known again. Addresses are given out one after the other, and the
 * last FAKE_ADDRESS_MAX names are remembered. A forgotten address has no name until all others were
 * given out, so no program ever reaches another name than the one it asked for.
 */
#pragma once

#include "model/address.h"

#define FAKE_ADDRESS_MAX   1024
#define FAKE_ADDRESS_TTL_S 30

struct fake_address {
	char *name;	 /* NULL: none yet */
	uint32_t offset; /* of its address in the range */
};

struct fake_addresses {
	struct fake_address
		*places; /* FAKE_ADDRESS_MAX, each at its offset's rest; NULL until the first */
	uint32_t next;	 /* offset to be given out */
};

void fake_addresses_fini(struct fake_addresses *fake_addresses);

/* Gives an IPv4 address; fake_address_as_v6() gives the IPv6 address for the same name. */
struct address fake_address_for(struct fake_addresses *fake_addresses, const char *name);
struct address fake_address_as_v6(struct address fake_address);

/* The name of the address, or NULL. */
const char *fake_address_name(const struct fake_addresses *fake_addresses, struct address address);

/* Whether the address is in the range of fake ones, with or without a name. */
bool fake_address_is_one(struct address address);
