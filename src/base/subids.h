/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids that an administrator has lent to an ordinary user, as /etc/subuid and /etc/subgid list them:
 * lines of `name:first:count`, where the name may also be a uid. Ranges are cut to whole sandboxes.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBIDS_SANDBOX	  1024u /* what each sandbox takes of them */
#define SUBIDS_RANGES_MAX 16
#define SUBIDS_REMEDY_MAX 200

struct subids {
	struct {
		uint32_t first, count;
	} ranges[SUBIDS_RANGES_MAX]; /* in the order of the file */
	size_t range_count;
	uint64_t total; /* ids in all of them */
	/* the first id above all that were lent to any user: free to be lent */
	uint32_t next_first;
};

/*
 * Parses the text of such a file for a user. Malformed lines do not count, nor ranges beyond the
 * maximum.
 */
void subids_parse(const char *text, const char *name, uid_t uid, struct subids *ret_subids);

enum subids_kind { SUBIDS_UID, SUBIDS_GID, SUBIDS_KINDS };

/* Reads the file of a kind, below the root directory; a file that cannot be read lends nothing. */
void subids_read(
	int root_fd, enum subids_kind kind, const char *name, uid_t uid, struct subids *ret_subids);

/*
 * Whether enough of both kinds was lent to a user for a sandbox; if not, the command that lends
 * more.
 */
bool subids_suffice(int root_fd, const char *name, uid_t uid, char remedy[SUBIDS_REMEDY_MAX]);
