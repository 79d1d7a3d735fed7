/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that wait in pools (core/pool/pool.h). Such a sandbox has an ordinary row, whose owner is the pool's
 * (model/access/owner.h), and a row here, which is written first and goes when the sandbox is given away: in the same
 * transaction in which it gets its owner. So a sandbox is the pool's or somebody's, never both, and never the pool's
 * again.
 */
#pragma once

#include "store/store.h"

#define STORE_POOL_STAMP_LEN 64

enum pooled_state {
	POOLED_MAKING,
	POOLED_READY,	 /* it may be given away */
	POOLED_DRAINING, /* it goes, and may not */
};

struct pooled_record {
	char id[ID_LEN + 1];
	struct owner owner; /* of the template; both empty: everybody's */
	char template_name[SANDBOX_TEMPLATE_MAX];
	char stamp[STORE_POOL_STAMP_LEN + 1]; /* all that it depends on */
	enum pooled_state state;
	int64_t created_at_ms;
};

int store_pool_add(struct store *store, const struct pooled_record *record, struct err *err)
	must_check;

/* It may be given away from now on. */
int store_pool_note_ready(struct store *store, const char *id, struct err *err) must_check;

/* It may not be given away from now on: 0. 1: it was, or there is none. */
int store_pool_drain(struct store *store, const char *id, struct err *err) must_check;

int store_pool_delete(struct store *store, const char *id, struct err *err) must_check;

/* Whether a sandbox is the pool's: 1, and its state; or 0. */
int store_pool_has(struct store *store, const char *id, enum pooled_state *ret_state,
	struct err *err) must_check;

/* Calls each for all of them in order of id; the record is borrowed. */
int store_pool_list(struct store *store,
	void (*each)(const struct pooled_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* Forgets those of which no sandbox is left. */
int store_pool_sweep(struct store *store, struct err *err) must_check;

/*
 * Gives a sandbox that is ready and has this stamp to the owner of the record, which becomes its row, with its
 * workspace, and with its members, whose records follow its own: 0. Start commands that are to begin anew
 * (restarts_start of the record) do so too if another daemon takes the sandbox up. What the owner may have is checked as for a create,
 * and an idempotency key (NULL: none) that has set an id aside names this one from now on. 1: it is not the pool's any
 * more, or not of that stamp, and nothing was done.
 */
int store_pool_claim(struct store *store, const struct sandbox_record records[], size_t count,
	const char *stamp, const char *key, struct err *err) must_check;
