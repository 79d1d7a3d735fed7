/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in the database (launch/launches.h). */
#pragma once

#include "model/work/launch_record.h"
#include "store/store.h"

int store_launch_insert(struct store *store, const struct launch_record *record, struct err *err)
	must_check;

/* Writes what changes: status, failed stage, cause, document and end. */
int store_launch_update(struct store *store, const struct launch_record *record, struct err *err)
	must_check;

/* Of an owner, or of anybody for NULL. The caller ends the record. */
int store_launch_get(struct store *store, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err) must_check;

struct store_launch_filter {
	const struct owner *owner;			       /* NULL: all */
	const char *project, *sandbox, *status, *failed_stage; /* NULL: any */
	int64_t since_ms;				       /* 0: any */
	const char *before; /* the id of the last one of the page before, or NULL */
	unsigned limit;
};

/* Calls each for up to limit rows, the newest first, until it says false; the record is borrowed. No lock is held. */
int store_launch_list(struct store *store, const struct store_launch_filter *filter,
	bool (*each)(const struct launch_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* Forgets all but the newest `keep` ended ones of an owner. */
int store_launch_prune(
	struct store *store, const struct owner *owner, unsigned keep, struct err *err) must_check;
