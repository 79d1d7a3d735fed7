/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas in the database. They are checked wherever a number grows: where sandboxes come to be, start and
 * change, in the transaction that makes it so (store_sandbox_insert, store_sandbox_claim,
 * store_sandbox_update): of any number of parallel requests exactly as many succeed as there is room for.
 *
 * Whom they are for is an owner; one without a user is the organization as a whole.
 */
#pragma once

#include "model/access/quota.h"
#include "store/store.h"

/* What holds for an organization, and for a user, of which nothing else is known. Before any use. */
void store_quota_set_defaults(
	struct store *store, const struct quota *organization, const struct quota *user);

/* Replaces what is set for somebody. What is unset is as the default says. */
int store_quota_put(struct store *store, const struct owner *whom, const struct quota *quota,
	struct err *err) must_check;
int store_quota_delete(struct store *store, const struct owner *whom, struct err *err) must_check;

struct quota_state {
	bool is_set;	     /* for them, and not only by default */
	struct quota limits; /* that hold */
	struct quota_amounts used;
};

/* What becomes of dangerous commands of an owner: the stricter of what holds for the user and for the organization. */
int store_quota_danger(struct store *store, const struct owner *owner,
	enum danger_policy *ret_policy, struct err *err) must_check;

int store_quota_get(struct store *store, const struct owner *whom, struct quota_state *ret_state,
	struct err *err) must_check;

/*
 * The next owners by name, after one (empty: from the first), of all who have something, or a token or quota: how many, at
 * most STORE_QUOTA_OWNERS_MAX.
 */
#define STORE_QUOTA_OWNERS_MAX 64
int store_quota_owners(struct store *store, const struct owner *after,
	struct owner ret_owners[STORE_QUOTA_OWNERS_MAX], struct err *err) must_check;

/*
 * What somebody uses beside the rows, for a moment: it counts like them, and goes with the daemon. Taken by
 * store_quota_claim(), which checks as a row would be checked, with the same errors, and writes nothing. The caller has the
 * struct, and gives it back.
 */
struct quota_claim {
	struct quota_claim *next;
	struct owner owner;
	struct quota_amounts amounts;
};

int store_quota_claim(struct store *store, const struct owner *owner,
	const struct quota_amounts *amounts, struct quota_claim *claim, struct err *err) must_check;

/* Harmless for one that is not taken. It waits for no statement. */
void store_quota_give_back(struct store *store, struct quota_claim *claim);

/*
 * Whether an owner may bring in layers (QUOTA_IMAGES) or files of projects (QUOTA_PROJECTS) of so many bytes beside those
 * that it has: 0, or ERR_RATE. That is asked while they come, since their size is not known before; whoever brings several
 * at a time asks for the sum.
 */
int store_quota_check_more(struct store *store, const struct owner *owner, enum quota_kind kind,
	uint64_t bytes, struct err *err) must_check;
