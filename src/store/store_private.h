/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, for the files of src/store only. */
#pragma once

#include "model/access/audit_entry.h"
#include "model/access/quota.h"
#include "store/db/db.h"
#include "store/db/sql.h"
#include "store/generation.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

#define STORE_BOOT_ID_MAX 40

/* A list copies so many rows at a time with the lock held; callbacks run when the lock is free. */
#define STORE_PAGE 64

#define STORE_TOKENS 64

/* See store_clock.h. */
struct store_clock {
	int64_t base_ms;      /* added to the steady clock; fixed after store_open() */
	atomic_llong skew_ms; /* what the wall clock is ahead */
	int64_t written_ms;   /* when the row was written; under the lock */
	char boot_id[STORE_BOOT_ID_MAX];
};

/* A token that was found, so that the next request with it does not ask the database. */
struct known_token {
	bool is_known;
	unsigned char hash[32];
	struct token_record record;
};

struct store {
	char *path;
	pthread_mutex_t reader_lock; /* of whoever reads the whole audit log */
	pthread_mutex_t lock;
	struct db *db;
	struct db_stmt *stmts[Q_COUNT];
	struct store_clock clock;
	unsigned idempotency_keys_noted; /* since the start */
	struct quota default_quotas[2];	 /* of an organization, of a user */
	enum { QUOTAS_UNKNOWN, QUOTAS_NONE, QUOTAS_SOME } quotas; /* rows; under the lock */
	pthread_mutex_t claims_lock; /* a leaf, of the next: nobody waits for the database there */
	struct quota_claim *claims;  /* what is used beside the rows */
	pthread_mutex_t tokens_lock; /* a leaf too, of the next */
	struct known_token tokens[STORE_TOKENS]; /* found lately, by their hashes */
	struct audit_mark audit_head;		 /* the entry that was written last */
	struct audit_mark audit_anchor;		 /* the last entry that was dropped for its age */
	int stamp_fd;				 /* -1: none */
	struct generation generation;
	bool is_stamp_failing;
};

/* Prepares a statement of sql.c for a connection; the caller ends it with db_finalize. */
int store_prepare(struct db *db, enum query query, struct db_stmt **ret_stmt, struct err *err);

/* A statement, ready to be bound; the caller holds the lock and ends with db_reset. */
struct db_stmt *store_use(struct store *store, enum query query);

struct workspace_claim {
	bool is_fresh;	      /* the owner had none of that id */
	uint64_t disk_growth; /* what its disk counts more than before */
};

/* The workspace of a new sandbox: the owner's own one of that id, or a fresh row. In a transaction, with the
 * lock held. */
int store_workspace_claim(struct store *store, struct sandbox_record *record,
	struct workspace_claim *ret_claim, struct err *err);

/* Writes the whole row of a sandbox; ERR_CONFLICT if another has its name or project. With the lock held. */
int store_sandbox_update_row(
	struct store *store, const struct sandbox_record *record, struct err *err);

/* Whether its owner may have one more like it. In the transaction that added it, with the lock held. */
int store_sandbox_check_create(struct store *store, const struct sandbox_record *record,
	const struct workspace_claim *claim, struct err *err);

/* Its disk may hold so much: it counts no less from now on. With the lock held. */
int store_workspace_grow(struct store *store, const char *id, uint64_t disk_bytes, struct err *err);

/* Goes on where the clock of the database was. */
int store_clock_load(struct store *store, struct err *err);

/* Reads where the audit log begins and ends. */
int store_audit_load(struct store *store, struct err *err);

/* Whether what an owner has now, of which `demand` is new, is within all limits. In the transaction that
 * added it, with the lock held. */
int store_quota_check(struct store *store, const struct owner *owner,
	const struct quota_amounts *wanted, struct err *err);

/* store_layer_check_image() in the transaction that writes the image, with the lock held. */
int store_layer_check_stack(struct store *store, const json_t *image, struct err *err);

/* What the layers of an image take on disk together, as far as that is known. With the lock held. */
uint64_t store_layer_bytes(struct store *store, const json_t *image);

/* 1 if there is any limit for an owner, else 0. With the lock held. */
int store_quota_applies(struct store *store, const struct owner *owner, struct err *err);

/* Tells the stamp of a sandbox or workspace that came or went; after the commit, with the lock held. */
void store_stamp(struct store *store);

/* At the start: above what the database and the workspaces have seen. */
int store_generation_raise(struct store *store, uint64_t floor, struct err *err);

/* A connection for one reader at a time: it may take long, and so holds up nobody who writes. To be closed
 * also if opening failed. */
struct store_reader {
	struct db *db;
	pthread_mutex_t *lock; /* held; NULL before it was opened */
};

int store_reader_open(struct store *store, struct store_reader *reader, struct err *err);
void store_reader_close(struct store_reader *reader);

/* Copies the database of a connection into the directory; see store_backup. */
int store_backup_from(
	struct db *db, const struct store_backup_rule *rule, uint64_t generation, struct err *err);

/* The generation of the newest; 0 if there is none, or no directory (NULL). */
uint64_t store_backup_generation(const char *dir);

/* Explains the last failure of a statement. */
int store_fail(struct store *store, const char *what, struct err *err);

/* How many rows of a list that may still give `left` rows are copied at once. */
unsigned store_page(unsigned left);

/* At the start: what can be written later is no reason not to serve what can be read. */
int store_forgive_full(int r, const struct err *err);

void store_bind_optional(struct db_stmt *stmt, int at, const char *text); /* NULL if it is empty */
void store_bind_owner(struct db_stmt *stmt, const struct owner *owner);	  /* NULL: all */
void store_bind_json(struct db_stmt *stmt, int at, const json_t *value);
void store_read_text(struct db_stmt *stmt, int column, char *text, size_t size);
json_t *store_read_json(struct db_stmt *stmt, int column);
