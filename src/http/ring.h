/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait to be sent: a ring that starts small and doubles when it must, so that thousands of
 * quiet connections cost little. Its owner has the lock and says how much may wait. Zeroed means empty.
 */
#pragma once

#include "base/mem.h"

#include <stddef.h>
#include <sys/uio.h>

struct ring {
	char *data;
	size_t size; /* of data */
	size_t head; /* where the next byte to send lies */
	size_t len;  /* bytes waiting */
};

void ring_fini(struct ring *ring);

/* Appends, growing past `capacity` only if it does not fit into that; all or nothing, 0 or -ENOMEM. */
int ring_put(struct ring *ring, size_t capacity, const void *data, size_t len) must_check;

/* Copies out and drops up to `size` bytes; how many. */
size_t ring_take(struct ring *ring, char *data, size_t size);

/* What waits, in its one or two pieces, and dropping the first bytes of it. */
int ring_pieces(const struct ring *ring, struct iovec pieces[2]);
void ring_drop(struct ring *ring, size_t len);
