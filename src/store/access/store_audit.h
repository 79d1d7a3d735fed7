/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log in the database. Entries are added at its end and never changed; triggers refuse
 * anything else, also to somebody with an SQL shell who does not mean to get around them. The oldest
 * may be dropped; an anchor then keeps the hash that the rest of the chain hangs on.
 */
#pragma once

#include "model/access/audit_entry.h"
#include "store/store.h"

/* Adds entries, all or none. Their sequences go on from that of the head. */
int store_audit_append(struct store *store, const struct audit_entry *const entries[], size_t count,
	struct err *err) must_check;

/* Drops the oldest, if there are clearly more than `keep`. */
int store_audit_prune(struct store *store, uint64_t keep, struct err *err) must_check;

/* The last entry that was added, as this process remembers it. */
struct audit_mark store_audit_head(struct store *store);

struct store_audit_filter {
	const char *organization; /* NULL or empty, here and below: any */
	const char *user;
	const char *action;
	const char *object; /* also those of its processes */
	int64_t before;	    /* only entries with a lower sequence; 0: all */
	unsigned limit;
};

/* Calls each for up to limit entries, the newest first; with its hash. Both are borrowed. */
int store_audit_list(struct store *store, const struct store_audit_filter *filter,
	void (*each)(const struct audit_entry *entry, const uint8_t *hash, void *arg), void *arg,
	struct err *err) must_check;

enum audit_flaw {
	AUDIT_WHOLE,
	AUDIT_CHANGED,	 /* the entry is not what its hash was made of, or not in its place */
	AUDIT_MISSING,	 /* there should be an entry of this sequence */
	AUDIT_CUT,	 /* this and all after it are gone from the end */
	AUDIT_REWRITTEN, /* the chain is sound, but this is not the entry that was there */
};

struct audit_report {
	enum audit_flaw flaw;
	int64_t bad; /* the first entry that is wrong */
	int64_t count;
	struct audit_mark anchor, head; /* the last that was dropped, the last that is there */
};

/*
 * Walks the whole chain. `known`, which may be NULL, is an entry that somebody noted earlier: it must
 * still be there, unless it was dropped for its age. So must what this process has written last.
 */
int store_audit_verify(struct store *store, const struct audit_mark *known,
	struct audit_report *ret_report, struct err *err) must_check;
