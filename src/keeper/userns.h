/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces, one for each uid range.
 *
 * The namespace is created by the range's own first uid, not by root: the kernel charges inotify
 * watches, timers and locked memory to the creator, and with root as the creator one sandbox could
 * use up everybody's share. It maps 65536 ids, so root inside is nobody in particular outside.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdint.h>

/* The uid (and gid) outside that is root inside. */
static inline uint32_t userns_base(uint32_t slot)
{
	return KEEPER_UID_FIRST + slot * KEEPER_UID_COUNT;
}

#define USERNS_KEPT 1024

/*
 * The namespaces made so far. A user namespace is nothing but its map, the same whenever it is made
 * for a range, so those of the low ranges, which are used first and again and again, are kept: making
 * one takes two processes a fifth of a millisecond.
 */
struct userns_cache {
	int fds[USERNS_KEPT]; /* one more than the descriptor; 0: not made yet */
};

/* The namespace of a range; the caller gets a descriptor of its own. */
int userns_get(struct userns_cache *cache, uint32_t slot, int *ret_fd, struct err *err) must_check;
