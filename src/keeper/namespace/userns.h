/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces, one for each uid range.
 *
 * Ranges are cut from the ids that the keeper is root over. Root of the host has plenty: each range
 * has 65536 ids. The keeper of an ordinary user has the ids that were lent to that user
 * (daemon/rootless.h): there a range is narrow, with the ids 0 to 1022, and 65534, which programs
 * know as `nobody`.
 *
 * The range's own first uid creates the namespace, not root: the kernel charges inotify watches,
 * timers and locked memory to the creator, and with root as the creator one sandbox could use up
 * the share of all. Root inside is an ordinary uid outside.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdint.h>

/* In ids of the keeper's own user namespace. */
struct userns_ranges {
	uint32_t first, width;
	uint32_t count;
	bool is_host; /* that namespace is the host's; else the keeper is root of less */
};

/* The uid (and gid) outside that is root inside. */
static inline uint32_t userns_base(const struct userns_ranges *ranges, uint32_t slot)
{
	return ranges->first + slot * ranges->width;
}

/* The range that a uid outside lies in; KEEPER_SLOT_COUNT if it lies in none. */
static inline uint32_t userns_slot(const struct userns_ranges *ranges, uint32_t uid)
{
	uint32_t slot = uid < ranges->first ? ranges->count : (uid - ranges->first) / ranges->width;

	return slot < ranges->count ? slot : KEEPER_SLOT_COUNT;
}

/* Finds out what ids there are. */
int userns_survey(struct userns_ranges *ret_ranges, struct err *err) must_check;

/* The same from the texts of /proc/self/uid_map and gid_map. */
int userns_cut_ranges(const char *uid_map, const char *gid_map, struct userns_ranges *ret_ranges,
	struct err *err) must_check;

#define USERNS_KEPT 1024

/*
 * The namespaces made so far. A user namespace is only its map, the same whenever it is made for a
 * range, so those of the low ranges, which are used most, are kept until the range is evicted
 * (range_cache.h): making one takes two processes a fifth of a millisecond.
 */
struct userns_cache {
	struct userns_ranges ranges;
	int fds[USERNS_KEPT]; /* one more than the descriptor; 0: not made yet */
};

/*
 * Gets the namespace of a range; the caller owns the descriptor. With pids other than 0 it is a new
 * namespace that holds no more processes than that: the kernel applies the RLIMIT_NPROC that the
 * creator of a namespace had to all processes in it together. For that no other sandbox may have
 * the same creator.
 */
int userns_get(struct userns_cache *cache, uint32_t slot, uint64_t pids, int *ret_fd,
	struct err *err) must_check;

/*
 * Makes a namespace that no process enters, for a mount that shows the files of one uid range of the host as
 * those of another; root's stay root's.
 */
int userns_map_range(uint32_t from_base, uint32_t to_base, int *ret_fd, struct err *err) must_check;

/* Closes the namespace of a range, if it is kept. */
void userns_forget(struct userns_cache *cache, uint32_t slot);
