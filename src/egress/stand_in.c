/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/stand_in.h"

#include "wire/egress.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

static_assert(
	EGRESS_STAND_IN_COUNT % STAND_IN_MAX == 0, "the oldest name gives way, over the end too");

void stand_ins_fini(struct stand_ins *stand_ins)
{
	for (size_t i = 0; stand_ins->places && i < STAND_IN_MAX; i++)
		free(stand_ins->places[i].name);
	free(stand_ins->places);
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

struct address stand_in_as_v6(struct address stand_in)
{
	struct address address = v6_network;

	memcpy(&address.bytes.s6_addr[12], &stand_in.bytes.s6_addr[12], 4);
	return address;
}

struct address stand_in_for(struct stand_ins *stand_ins, const char *name)
{
	uint32_t offset = stand_ins->next, place = offset % STAND_IN_MAX;

	if (!stand_ins->places)
		stand_ins->places = mem_new(STAND_IN_MAX * sizeof(stand_ins->places[0]));
	for (size_t i = 0; i < STAND_IN_MAX && stand_ins->places[i].name; i++) {
		if (strcmp(stand_ins->places[i].name, name) == 0)
			return address_at(stand_ins->places[i].offset);
	}
	free(stand_ins->places[place].name);
	stand_ins->places[place].name = mem_strdup(name);
	stand_ins->places[place].offset = offset;
	stand_ins->next = (offset + 1) % EGRESS_STAND_IN_COUNT;
	return address_at(offset);
}

const char *stand_in_name(const struct stand_ins *stand_ins, struct address address)
{
	uint32_t offset = offset_of(address), place = offset % STAND_IN_MAX;

	if (!stand_ins->places || !stand_in_is_one(address) ||
		stand_ins->places[place].offset != offset)
		return NULL;
	return stand_ins->places[place].name;
}

bool stand_in_is_one(struct address address)
{
	return offset_of(address) < EGRESS_STAND_IN_COUNT;
}
