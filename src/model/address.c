/* SPDX-License-Identifier: Apache-2.0 */
#include "model/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

struct address address_from_v4(struct in_addr v4)
{
	struct address address = {.bytes.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(&address.bytes.s6_addr[12], &v4, sizeof(v4));
	return address;
}

struct in_addr address_to_v4(struct address address)
{
	struct in_addr v4;

	memcpy(&v4, &address.bytes.s6_addr[12], sizeof(v4));
	return v4;
}

bool address_is_v4(struct address address)
{
	return IN6_IS_ADDR_V4MAPPED(&address.bytes);
}

int address_parse(const char *text, struct address *ret_address)
{
	struct address address;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		address = address_from_v4(v4);
	else if (inet_pton(AF_INET6, text, &address.bytes) != 1)
		return -EINVAL;
	*ret_address = address;
	return 0;
}

void address_format(struct address address, char text[ADDRESS_TEXT_MAX])
{
	struct in_addr v4 = address_to_v4(address);

	if (address_is_v4(address))
		inet_ntop(AF_INET, &v4, text, ADDRESS_TEXT_MAX);
	else
		inet_ntop(AF_INET6, &address.bytes, text, ADDRESS_TEXT_MAX);
}

bool address_equals(struct address one, struct address other)
{
	return memcmp(&one, &other, sizeof(one)) == 0;
}

bool address_is_within(struct address address, struct address network, unsigned prefix_len)
{
	const uint8_t *one = address.bytes.s6_addr, *other = network.bytes.s6_addr;
	unsigned whole = prefix_len / 8, rest = prefix_len % 8;

	return memcmp(one, other, whole) == 0 &&
	       (rest == 0 || ((one[whole] ^ other[whole]) & (uint8_t)(0xff00 >> rest)) == 0);
}

/* --- what is everybody's --- */

/* 64:ff9b::/96, by which NAT64 leads from networks without IPv4 to one address of it. */
static const struct address translated = {.bytes.s6_addr = {0, 0x64, 0xff, 0x9b}};

static bool is_translated(struct address address)
{
	return address_is_within(address, translated, ADDRESS_V4_PREFIX);
}

struct address address_meant(struct address address)
{
	return is_translated(address) ? address_from_v4(address_to_v4(address)) : address;
}

/* The 32 bits of an address that tell, and what they must be to be special. */
struct special {
	uint32_t network, mask;
};

/* All of IPv4 that is not the internet, after the registry of special addresses of IANA. */
static const struct special special_v4[] = {
	{0x00000000, 0xff000000}, /* 0/8: this host */
	{0x0a000000, 0xff000000}, /* 10/8 */
	{0x64400000, 0xffc00000}, /* 100.64/10: behind a provider's NAT, and metadata of some */
	{0x7f000000, 0xff000000}, /* 127/8 */
	{0xa83f8110, 0xffffffff}, /* 168.63.129.16: the host of a virtual machine, on Azure */
	{0xa9fe0000, 0xffff0000}, /* 169.254/16: link-local, metadata of clouds */
	{0xac100000, 0xfff00000}, /* 172.16/12 */
	{0xc0000000, 0xffffff00}, /* 192.0.0/24 */
	{0xc0000200, 0xffffff00}, /* 192.0.2/24: documentation */
	{0xc0586300, 0xffffff00}, /* 192.88.99/24 */
	{0xc0a80000, 0xffff0000}, /* 192.168/16 */
	{0xc6120000, 0xfffe0000}, /* 198.18/15: stands for names inside */
	{0xc6336400, 0xffffff00}, /* 198.51.100/24 */
	{0xcb007100, 0xffffff00}, /* 203.0.113/24 */
	{0xe0000000, 0xe0000000}, /* 224/3: multicast, reserved, broadcast */
};

/*
 * The internet of IPv6 is 2000::/3, but for these. What leads to an IPv4 address could be a private one: of
 * such only 64:ff9b::/96 is looked into, because where all servers of IPv4 are reached by it, all names lead
 * there. Not 64:ff9b:1::/48: where in it the address is, each network decides for itself.
 */
static const struct special special_v6[] = {
	{0x20010000, 0xfffffe00}, /* 2001::/23: protocols, of them Teredo */
	{0x20010db8, 0xffffffff}, /* 2001:db8::/32: documentation */
	{0x20020000, 0xffff0000}, /* 2002::/16: 6to4 */
	{0x3fff0000, 0xfffff000}, /* 3fff::/20: documentation */
};

#define PUBLIC_V6     0x20000000u
#define PUBLIC_V6_LEN 3

static uint32_t bits_at(struct address address, size_t at)
{
	uint32_t bits;

	memcpy(&bits, &address.bytes.s6_addr[at], sizeof(bits));
	return ntohl(bits);
}

static uint32_t mask_of(unsigned len)
{
	return len == 0 ? 0 : len >= 32 ? UINT32_MAX : ~0u << (32 - len);
}

/* Two networks overlap if they agree in what both fix. */
static bool overlaps(uint32_t network, uint32_t mask, const struct special *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (((network ^ list[i].network) & mask & list[i].mask) == 0)
			return true;
	}
	return false;
}

bool address_network_is_public(struct address network, unsigned prefix_len)
{
	uint32_t first = bits_at(network, 0);

	if ((address_is_v4(network) || is_translated(network)) && prefix_len >= ADDRESS_V4_PREFIX)
		return !overlaps(bits_at(network, 12), mask_of(prefix_len - ADDRESS_V4_PREFIX),
			special_v4, array_len(special_v4));
	return prefix_len >= PUBLIC_V6_LEN && (first & mask_of(PUBLIC_V6_LEN)) == PUBLIC_V6 &&
	       !overlaps(first, mask_of(prefix_len), special_v6, array_len(special_v6));
}

bool address_is_public(struct address address)
{
	return address_network_is_public(address, ADDRESS_PREFIX_MAX);
}

/* --- sockets --- */

socklen_t address_to_socket(struct address address, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (address_is_v4(address)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		v4->sin_addr = address_to_v4(address);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	v6->sin6_addr = address.bytes;
	return sizeof(*v6);
}

struct address address_of_socket(const struct sockaddr_storage *in, uint16_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)in;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)in;

	if (in->ss_family == AF_INET) {
		*ret_port = ntohs(v4->sin_port);
		return address_from_v4(v4->sin_addr);
	}
	*ret_port = ntohs(v6->sin6_port);
	return (struct address){v6->sin6_addr};
}
