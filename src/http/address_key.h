/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key by which limits count connections of an address: an IPv4 address, or the /64 network of
 * an IPv6 address, since a host that has one address of it has all.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* The key of an address; never 0. */
uint64_t address_key_of(const struct sockaddr *address);
