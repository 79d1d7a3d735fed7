/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in the database (core/job/job.h). */
#pragma once

#include "model/work/job_record.h"
#include "store/store.h"

#define STORE_JOBS_ACTIVE_MAX 16 /* of an owner, queued or running */

/*
 * Adds one. ERR_RATE (too_many_jobs) if its owner has as many as may be that are not over; -EEXIST
 * with ERR_CONFLICT if one of the same owner, kind and key is not over.
 */
int store_job_insert(struct store *store, const struct job_record *record, struct err *err)
	must_check;

/* Writes what changes while it runs: state, cancel, tries, progress, result, error and times. */
int store_job_update(struct store *store, const struct job_record *record, struct err *err)
	must_check;

/* Of an owner, or of anybody for NULL. The caller ends the record. */
int store_job_get(struct store *store, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err) must_check;

/* The one of an owner, kind and key that is not over; -ENOENT if there is none. */
int store_job_find(struct store *store, const struct owner *owner, const char *kind,
	const char *key, struct job_record *ret_record, struct err *err) must_check;

struct store_job_filter {
	const struct owner *owner; /* NULL: all */
	const char *state, *kind, *target;
	const char *before; /* the id of the last one of the page before, or NULL */
	unsigned limit;
	bool is_active; /* only those that are not over */
};

/* Calls each for up to limit rows, the newest first, until it says false; the record is borrowed. No lock is held. */
int store_job_list(struct store *store, const struct store_job_filter *filter,
	bool (*each)(const struct job_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* Ids of an owner's jobs that are over, but for the newest `keep`; how many, at most max. */
int store_job_excess(struct store *store, const struct owner *owner, unsigned keep,
	char ids[][ID_LEN + 1], unsigned max, struct err *err) must_check;

int store_job_delete(struct store *store, const char *id, struct err *err) must_check;
