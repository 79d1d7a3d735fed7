/* SPDX-License-Identifier: Apache-2.0 */
/* An address of the internet, of either version in one form: IPv4 as ::ffff:a.b.c.d. */
#pragma once

#include "base/mem.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX   INET6_ADDRSTRLEN
#define ADDRESS_V4_PREFIX  96 /* bits that all of IPv4 has in common */
#define ADDRESS_PREFIX_MAX 128

struct address {
	struct in6_addr bytes;
};

struct address address_from_v4(struct in_addr v4);
struct in_addr address_to_v4(struct address address);
bool address_is_v4(struct address address);

/* Digits and dots, or digits and colons; nothing that only some programs take for an address. */
int address_parse(const char *text, struct address *ret_address) must_check;
void address_format(struct address address, char text[ADDRESS_TEXT_MAX]);

bool address_equals(struct address one, struct address other);
bool address_is_within(struct address address, struct address network, unsigned prefix_len);

/* The address of IPv4 that a translator makes of it, if it is one for that; else itself. */
struct address address_meant(struct address address);

/* Whether it is of everybody's internet: not private, of loopback or of a provider. */
bool address_is_public(struct address address);

/* The same for all that a network holds. */
bool address_network_is_public(struct address network, unsigned prefix_len);

/* For sockets; the length. */
socklen_t address_to_socket(struct address address, uint16_t port, struct sockaddr_storage *out);
struct address address_of_socket(const struct sockaddr_storage *in, uint16_t *ret_port);
