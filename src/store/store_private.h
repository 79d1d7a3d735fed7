/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, for the files of src/store only. */
#pragma once

#include "model/audit_entry.h"
#include "model/quota.h"
#include "store/slot_set.h"
#include "store/sql.h"
#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>

#define STORE_BUSY_MS 5000 /* how long a statement waits for another process that has the file */

struct store {
	char *path;
	pthread_mutex_t reader_lock; /* of whoever reads the whole audit log */
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *stmts[Q_COUNT];
	struct slot_set slots;		/* uid ranges of the workspaces */
	unsigned replays_noted;		/* since the start */
	struct quota default_quotas[2]; /* of an organization, of a user */
	struct audit_mark audit_head;	/* the entry that was written last */
	struct audit_mark audit_anchor; /* the last entry that was dropped for its age */
};

/* A statement, ready to be bound; the caller holds the lock and ends with sqlite3_reset. */
sqlite3_stmt *store_use(struct store *store, enum query query);

/* Reads which uid ranges are taken. */
int store_workspace_load(struct store *store, struct err *err);

/* The workspace of a new sandbox: the owner's own one of that id, or a fresh row with a uid range, which
 * the caller gives back to the slots if it rolls back. In a transaction, with the lock held. */
int store_workspace_claim(
	struct store *store, struct sandbox_record *record, bool *ret_fresh, struct err *err);

/* Reads where the audit log begins and ends. */
int store_audit_load(struct store *store, struct err *err);

/* Whether what an owner has now, of which `demand` is new, is within all limits. In the transaction that
 * added it, with the lock held. */
int store_quota_check(struct store *store, const struct owner *owner,
	const struct quota_amounts *demand, struct err *err);

/* 1 if there is any limit for an owner, else 0. With the lock held. */
int store_quota_applies(struct store *store, const struct owner *owner, struct err *err);

/* Runs one that gives no rows. */
int store_run(struct store *store, sqlite3_stmt *stmt, const char *what, struct err *err);

/* Explains the last failure of the library. */
int store_fail(struct store *store, const char *what, struct err *err);

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text);
void store_bind_optional(sqlite3_stmt *stmt, int at, const char *text); /* NULL if it is empty */
void store_bind_owner(sqlite3_stmt *stmt, const struct owner *owner);	/* NULL: all */
void store_bind_json(sqlite3_stmt *stmt, int at, const json_t *value);
void store_read_text(sqlite3_stmt *stmt, int column, char *text, size_t size);
json_t *store_read_json(sqlite3_stmt *stmt, int column);
