/* SPDX-License-Identifier: Apache-2.0 */
/* Executions in the database (core/execution/execution.h). */
#pragma once

#include "model/work/execution_record.h"
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
	const char *status, *language, *sandbox, *function;
	int64_t since_ms, until_ms; /* when it was asked for; 0: any time */
	const char *before;	    /* the id of the last one of the page before, or NULL */
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

/* What became of executions of a sandbox, or of a function, or of those that have neither. */
struct store_execution_stats {
	char sandbox[ID_LEN + 1];      /* empty: a fresh one each time */
	char function[MODEL_NAME_MAX]; /* empty: none */
	uint64_t count, failed;	       /* that are over; of those, that did not succeed */
	uint64_t p50_us, p95_us;       /* durations that half, and 95 of 100, did not exceed */
};

/* For each group of those that fit sandbox, function and time of the filter, the largest first, at most its limit. */
int store_execution_stats(struct store *store, const struct store_execution_filter *filter,
	void (*each)(const struct store_execution_stats *stats, void *arg), void *arg,
	struct err *err) must_check;

/* Forgets what is older, whoever it belongs to, or the most that is done at once: how many. */
int store_execution_expire(struct store *store, int64_t since_ms, struct err *err) must_check;

/* Which execution has a copy of an artifact, by the digest of its content (core/execution/artifact_store.h). */
struct store_artifact {
	char execution[ID_LEN + 1];
	char digest[65];
	bool is_shared; /* another one has the same */
};

int store_artifact_put(
	struct store *store, const char *execution, const char *digest, struct err *err) must_check;

/* One of an execution that is forgotten: 1, or 0 if there is none. */
int store_artifact_stale(struct store *store, struct store_artifact *ret_artifact, struct err *err)
	must_check;

int store_artifact_delete(
	struct store *store, const struct store_artifact *artifact, struct err *err) must_check;

/* Forgets what an owner has beyond the rule, or the most that is done at once: how many. */
int store_execution_prune(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, struct err *err) must_check;
