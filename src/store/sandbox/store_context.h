/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts in the database (core/context/context.h). They go with their sandbox, whose owner is theirs. */
#pragma once

#include "model/work/context_record.h"
#include "store/store.h"

int store_context_insert(struct store *store, const struct context_record *record, struct err *err)
	must_check;

/* Writes what changes. One that was deleted stays so. */
int store_context_update(struct store *store, const struct context_record *record, struct err *err)
	must_check;

/* The caller ends the record. */
int store_context_get(struct store *store, const char *sandbox_id, const char *id,
	struct context_record *ret_record, struct err *err) must_check;

int store_context_delete(
	struct store *store, const char *sandbox_id, const char *id, struct err *err) must_check;

/*
 * Up to max rows of a sandbox, or with NULL those of all that have not ended, in the order of their ids from behind
 * `after` on; how many. The caller ends each.
 */
int store_context_list(struct store *store, const char *sandbox_id, const char *after,
	struct context_record *records, unsigned max, struct err *err) must_check;
