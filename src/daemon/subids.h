/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids that an administrator has lent to an ordinary user, as /etc/subuid and /etc/subgid list them:
 * lines of `name:first:count`, where the name may also be a uid.
 */
#pragma once

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBIDS_RANGES_MAX 16

struct subids {
	struct {
		uint32_t first, count;
	} ranges[SUBIDS_RANGES_MAX]; /* in the order of the file */
	size_t range_count;
	uint64_t total;	     /* ids in all of them */
	uint32_t next_first; /* the first id above all that anybody was lent: free to be lent */
};

/*
 * What the text of such a file lends to a user, each range cut to a multiple of unit. Lines that are
 * none, and ranges beyond the most, do not count.
 */
void subids_parse(
	const char *text, const char *name, uid_t uid, uint32_t unit, struct subids *ret_subids);

/* The same from a file; one that cannot be read lends nothing. */
void subids_read(
	const char *path, const char *name, uid_t uid, uint32_t unit, struct subids *ret_subids);
