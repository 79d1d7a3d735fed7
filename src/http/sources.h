/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections each source has: an IPv4 address, or the /64 network of an IPv6 one, since
 * whoever has one address of it has all. Any thread.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct sources;

struct sources *sources_new(unsigned max_each);
void sources_free(struct sources *sources);

/* What stands for the source of an address; never 0. */
uint64_t sources_key(const struct sockaddr *address);

/* Counts one more in any case; false if these are more than a source may have. */
bool sources_enter(struct sources *sources, uint64_t key) must_check;
void sources_leave(struct sources *sources, uint64_t key);
