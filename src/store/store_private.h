/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, for the files of src/store only. */
#pragma once

#include "store/store.h"
#include "wire/keeper.h"

#include <pthread.h>
#include <sqlite3.h>

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
	Q_TOKEN_PUT,
	Q_TOKEN_FIND,
	Q_TOKEN_GET,
	Q_TOKEN_LIST,
	Q_TOKEN_DELETE,
	Q_TOKEN_TOUCH,
	Q_COUNT,
};

struct store {
	pthread_mutex_t lock;
	sqlite3 *db;
	sqlite3_stmt *stmts[Q_COUNT];
	uint32_t lowest_free;		      /* no uid range below is free */
	uint8_t slots[KEEPER_SLOT_COUNT / 8]; /* which uid ranges are taken */
};

/* A statement, ready to be bound; the caller holds the lock and ends with sqlite3_reset. */
sqlite3_stmt *store_use(struct store *store, enum query query);

/* Runs one that gives no rows. */
int store_run(struct store *store, sqlite3_stmt *stmt, const char *what, struct err *err);

/* Explains the last failure of the library. */
int store_fail(struct store *store, const char *what, struct err *err);

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text);
void store_bind_owner(sqlite3_stmt *stmt, const struct owner *owner); /* NULL: all */
void store_bind_json(sqlite3_stmt *stmt, int at, const json_t *value);
void store_read_text(sqlite3_stmt *stmt, int column, char *text, size_t size);
json_t *store_read_json(sqlite3_stmt *stmt, int column);
