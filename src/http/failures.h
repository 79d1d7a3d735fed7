/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong tokens, counted for each source address with a bucket that refills. Whoever has emptied its
 * bucket is told to wait (429) instead of what was wrong; a good token is served all the same, since
 * whoever is behind the same address (a proxy) is not to blame, and 256 bits are not guessed.
 *
 * Of a fixed size: a source that is not there takes the place of one that has been quiet for longest, among
 * few. An IPv6 source is its network of 64 bits, which is what one household has.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#define FAILURES_BURST	 500 /* at once */
#define FAILURES_PER_SEC 10  /* for good */

struct failures;

struct failures *failures_new(void);
void failures_free(struct failures *failures);

/* Counts one. In how many seconds the source may try again; 0 if it may at once. */
unsigned failures_count(
	struct failures *failures, const struct sockaddr_storage *source, uint64_t now_ms);
