/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/fake_address.h"

#include "wire/egress.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

static_assert(EGRESS_STAND_IN_COUNT % FAKE_ADDRESS_MAX == 0,
	"the oldest name gives way, over the end too");

void fake_addresses_fini(struct fake_addresses *fake_addresses)
{
	for (size_t i = 0; fake_addresses->places && i < FAKE_ADDRESS_MAX; i++)
		free(fake_addresses->places[i].name);
	free(fake_addresses->places);
}

static const struct address v6_network = {.bytes.s6_addr = EGRESS_STAND_IN_V6};

/* Those of IPv6 end with the one of IPv4. */
static uint32_t offset_of(struct address address)
{
	if (!address_is_v4(address) &&
		!address_is_within(address, v6_network, EGRESS_STAND_IN_V6_LEN))
		return UINT32_MAX;
	return ntohl(address_to_v4(address).s_addr) - EGRESS_STAND_IN_FIRST;
}

static struct address address_at(uint32_t offset)
{
	return address_from_v4((struct in_addr){htonl(EGRESS_STAND_IN_FIRST + offset)});
}

struct address fake_address_as_v6(struct address fake_address)
{
	struct address address = v6_network;

	memcpy(&address.bytes.s6_addr[12], &fake_address.bytes.s6_addr[12], 4);
	return address;
}

struct address fake_address_for(struct fake_addresses *fake_addresses, const char *name)
{
	uint32_t offset = fake_addresses->next, place = offset % FAKE_ADDRESS_MAX;

	if (!fake_addresses->places)
		fake_addresses->places =
			mem_new(FAKE_ADDRESS_MAX * sizeof(fake_addresses->places[0]));
	for (size_t i = 0; i < FAKE_ADDRESS_MAX && fake_addresses->places[i].name; i++) {
		if (strcmp(fake_addresses->places[i].name, name) == 0)
			return address_at(fake_addresses->places[i].offset);
	}
	free(fake_addresses->places[place].name);
	fake_addresses->places[place].name = mem_strdup(name);
	fake_addresses->places[place].offset = offset;
	fake_addresses->next = (offset + 1) % EGRESS_STAND_IN_COUNT;
	return address_at(offset);
}

const char *fake_address_name(const struct fake_addresses *fake_addresses, struct address address)
{
	uint32_t offset = offset_of(address), place = offset % FAKE_ADDRESS_MAX;

	if (!fake_addresses->places || !fake_address_is_one(address) ||
		fake_addresses->places[place].offset != offset)
		return NULL;
	return fake_addresses->places[place].name;
}

bool fake_address_is_one(struct address address)
{
	return offset_of(address) < EGRESS_STAND_IN_COUNT;
}
