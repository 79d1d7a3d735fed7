/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces, one for each uid range.
 *
 * Ranges are cut from the ids that the keeper is root over. Root of the host has plenty: each range has
 * 65536 ids. The keeper of an ordinary user has what that user was lent (daemon/rootless.h): there a
 * range is narrow, with the ids 0 to 1022, and 65534, which programs know as nobody.
 *
 * The namespace is created by the range's own first uid, not by root: the kernel charges inotify
 * watches, timers and locked memory to the creator, and with root as the creator one sandbox could
 * use up everybody's share. Root inside is nobody in particular outside.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdint.h>

/* In ids of the keeper's own user namespace. */
struct userns_ranges {
	uint32_t first, width;
	uint32_t count;
	bool is_host; /* that namespace is the host's; else we are root of less */
};

/* The uid (and gid) outside that is root inside. */
static inline uint32_t userns_base(const struct userns_ranges *ranges, uint32_t slot)
{
	return ranges->first + slot * ranges->width;
}

/* Finds out what ids there are. */
int userns_survey(struct userns_ranges *ret_ranges, struct err *err) must_check;

/* The same from the texts of /proc/self/uid_map and gid_map. */
int userns_cut_ranges(const char *uid_map, const char *gid_map, struct userns_ranges *ret_ranges,
	struct err *err) must_check;

#define USERNS_KEPT 1024

/*
 * The namespaces made so far. A user namespace is nothing but its map, the same whenever it is made
 * for a range, so those of the low ranges, which are used first and again and again, are kept: making
 * one takes two processes a fifth of a millisecond.
 */
struct userns_cache {
	struct userns_ranges ranges;
	int fds[USERNS_KEPT]; /* one more than the descriptor; 0: not made yet */
};

/*
 * The namespace of a range; the caller gets a descriptor of its own. With pids other than 0 it is a new
 * one that holds no more processes than that: the kernel keeps to the RLIMIT_NPROC that the creator of
 * a namespace had, for all in it together. That needs the creator to be nobody else's.
 */
int userns_get(struct userns_cache *cache, uint32_t slot, uint64_t pids, int *ret_fd,
	struct err *err) must_check;

/* Makes the namespace of a range ahead, if it is one that is kept. */
int userns_prepare(struct userns_cache *cache, uint32_t slot, struct err *err) must_check;
