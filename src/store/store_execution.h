/* SPDX-License-Identifier: Apache-2.0 */
/* Executions in the database (core/execution/execution.h). */
#pragma once

#include "model/execution_record.h"
#include "store/store.h"

int store_execution_insert(
	struct store *store, const struct execution_record *record, struct err *err) must_check;

/* Writes what changes: status, cancelling, process, outcome and end. */
int store_execution_update(
	struct store *store, const struct execution_record *record, struct err *err) must_check;

/* Of an owner, or of anybody for NULL, with its outcome. The caller ends the record. */
int store_execution_get(struct store *store, const struct owner *owner, const char *id,
	struct execution_record *ret_record, struct err *err) must_check;

struct store_execution_filter {
	const struct owner *owner; /* NULL: all */
	const char *status, *language, *sandbox;
	const char *before; /* the id of the last one of the page before, or NULL */
	unsigned limit;
	bool is_active; /* only those that run */
};

/* Calls each for up to limit rows without their outcomes, the newest first, until it says false; the record is
 * borrowed. No lock is held. */
int store_execution_list(struct store *store, const struct store_execution_filter *filter,
	bool (*each)(const struct execution_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* How many of an owner's ended ones are kept, since when, and how many bytes of them. */
struct store_execution_rule {
	unsigned count;
	int64_t since_ms;
	uint64_t bytes;
};

/* Forgets what an owner has beyond the rule; at most a page at a time. */
int store_execution_prune(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, struct err *err) must_check;
