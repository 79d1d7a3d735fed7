/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphans: sandboxes that have files but no row, because the database is an older one, or was lost. The
 * start of the daemon finds them (reconcile.c). Their files stay as they are, and nobody can create a sandbox
 * of their ids, until an operator adopts or purges them.
 */
#pragma once

#include "core/engine/engine.h"

struct orphan {
	char id[ID_LEN + 1];
};

/* In order, those after the id `after`, at most max; how many. */
size_t orphan_list(struct engine *engine, const char *after, struct orphan orphans[], size_t max);

bool orphan_exists(struct engine *engine, const char *id);

/*
 * Makes rows for one: a stopped sandbox like the draft, which names its id and its new owner.
 * ERR_CONFLICT if another workspace has its uid range.
 */
int orphan_adopt(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err) must_check;

/* Removes its files for good. */
int orphan_purge(struct engine *engine, const char *id, struct err *err) must_check;

/* Keeps one that has files and no row. */
void orphan_note(struct engine *engine, const char *id);
