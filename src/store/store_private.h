/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, for the files of src/store only. */
#pragma once

#include "model/audit_entry.h"
#include "model/quota.h"
#include "store/store.h"
#include "wire/keeper.h"

#include <pthread.h>
#include <sqlite3.h>

#define STORE_BUSY_MS 5000 /* how long a statement waits for another process that has the file */

/* Every statement of the program: prepared once, used under the mutex. */
enum query {
	Q_BEGIN,
	Q_COMMIT,
	Q_ROLLBACK,
	Q_SANDBOX_INSERT,
	Q_SANDBOX_UPDATE,
	Q_SANDBOX_GET,
	Q_SANDBOX_FIND,
	Q_SANDBOX_DELETE,
	Q_SANDBOX_LIST,
	Q_SANDBOX_DUE,
	Q_SANDBOX_TOUCH,
	Q_SANDBOX_END_ALL,
	Q_SANDBOX_CLAIM,
	Q_WORKSPACE_INSERT,
	Q_WORKSPACE_GET,
	Q_WORKSPACE_DELETE,
	Q_WORKSPACE_SLOTS,
	Q_PROCESS_INSERT,
	Q_PROCESS_UPDATE,
	Q_PROCESS_DELETE,
	Q_PROCESS_GET,
	Q_PROCESS_LIST,
	Q_PROCESS_LAST,
	Q_PROCESS_SURPLUS,
	Q_PROCESS_END_ALL,
	Q_PROCESS_FORGET,
	Q_PREVIEW_LINK_ADD,
	Q_PREVIEW_LINK_GET,
	Q_PREVIEW_LINK_LIST,
	Q_PREVIEW_LINK_DELETE,
	Q_PREVIEW_LINK_CLEAN,
	Q_TOKEN_PUT,
	Q_TOKEN_FIND,
	Q_TOKEN_GET,
	Q_TOKEN_LIST,
	Q_TOKEN_DELETE,
	Q_TOKEN_TOUCH,
	Q_AUDIT_APPEND,
	Q_AUDIT_HEAD,
	Q_AUDIT_ANCHOR,
	Q_AUDIT_MOVE_ANCHOR,
	Q_AUDIT_PRUNE,
	Q_QUOTA_GET,
	Q_QUOTA_PUT,
	Q_QUOTA_DELETE,
	Q_QUOTA_USE,
	Q_QUOTA_WORKSPACES,
	Q_QUOTA_PACE_GET,
	Q_QUOTA_PACE_PUT,
	Q_REPLAY_GET,
	Q_REPLAY_PUT,
	Q_REPLAY_ANSWER,
	Q_REPLAY_DELETE,
	Q_REPLAY_EXPIRE,
	Q_REPLAY_PRUNE,
	Q_SECRET_PUT,
	Q_SECRET_LIST,
	Q_SECRET_DELETE,
	Q_COUNT,
};

struct store {
	char *path;
	pthread_mutex_t reader_lock; /* of whoever reads the whole audit log */
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *stmts[Q_COUNT];
	uint32_t lowest_free;		      /* no uid range below is free */
	uint32_t turn;			      /* the one after that taken last */
	uint32_t slots_in_turn;		      /* how many of the lowest free ones take turns */
	uint8_t slots[KEEPER_SLOT_COUNT / 8]; /* which uid ranges are taken */
	unsigned replays_noted;		      /* since the start */
	struct quota default_quotas[2];	      /* of an organization, of a user */
	struct audit_mark audit_head;	      /* the entry that was written last */
	struct audit_mark audit_anchor;	      /* the last entry that was dropped for its age */
};

/* A statement, ready to be bound; the caller holds the lock and ends with sqlite3_reset. */
sqlite3_stmt *store_use(struct store *store, enum query query);

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
void store_bind_owner(sqlite3_stmt *stmt, const struct owner *owner); /* NULL: all */
void store_bind_json(sqlite3_stmt *stmt, int at, const json_t *value);
void store_read_text(sqlite3_stmt *stmt, int column, char *text, size_t size);
json_t *store_read_json(sqlite3_stmt *stmt, int column);
