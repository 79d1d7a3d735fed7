/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database under the store: connections, transactions, statements, rows. db.c passes each call on to the kind of
 * database that the connection has. One file implements db_ops.h for each kind (db_sqlite.c), and only that file knows
 * the client library.
 *
 * Ownership. db_open() gives a connection that the caller closes. db_prepare() gives a statement that the caller ends
 * with db_finalize() before the connection is closed. Text and blobs of a row belong to the statement and are valid
 * until its next db_step() or db_reset().
 *
 * Threads. One thread at a time uses a connection, and all statements of a connection count as the connection. The
 * store has one connection for writing, guarded by store->lock, and opens a second one for long reads (the audit log,
 * backups), guarded by store->reader_lock. Calls that need no lock say so.
 *
 * Errors. A function that takes `struct err` explains its failure there and returns a negative number. db_step() has
 * no `struct err`: db_error() explains the failure of the last db_step() of a connection. An explanation says what was
 * tried; it names the database only where the message is for the operator alone (ERR_INTERNAL), and it has a remedy:
 *   database_damaged       ERR_INTERNAL     the content is not what the database wrote
 *   database_unavailable   ERR_INTERNAL     the database cannot be opened for writing
 *   database_failed        ERR_INTERNAL     anything else
 *   database_busy          ERR_UNAVAILABLE  another process holds the database
 *   -                      ERR_UNAVAILABLE  there is no memory
 *   -                      ERR_NO_SPACE     the disk is full
 *
 * SQL. Parameters are written ?1, ?2, ..., with gaps between the numbers; one may occur several times; one that is not
 * bound is a NULL of type text, and so is one that is asked for IS NULL. An implementation whose library wants another
 * form rewrites them in its prepare (PostgreSQL: $1 without gaps, and CAST($1 AS text) before IS NULL; it then takes
 * all that the databases share). Identifiers that are reserved words somewhere stand in double quotes ("user", "key"),
 * and || joins texts; an implementation sets its session so that both hold. Values are 64-bit integers, UTF-8 text and
 * blobs. What else differs between databases has a row for each dialect in sql.c and a list of migrations for each
 * dialect in schema.c.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct db;
struct db_stmt;

enum db_dialect { DB_SQLITE, DB_DIALECT_COUNT };

#define DB_REMEDY_RESTORE                                                                          \
	"stop sandlotd and bring back the last backup: sandlot restore; see sandlot restore "      \
	"--list"

/* --- connections --- */

/* A database is named by its place: a path (SQLite), or the URL of a server ("postgresql://..."). */
enum db_mode {
	DB_OWN,	 /* makes the database if there is none; for the one process that writes */
	DB_READ, /* only reads, beside the one that writes */
};

/*
 * Opens a database. DB_OWN changes nothing of an existing one before db_configure(), so that the caller can look at it
 * and refuse it. A connection is to be closed with db_close(); NULL is allowed there. ERR_INVALID, database_unknown:
 * there is no kind of database for this place.
 */
int db_open(const char *place, enum db_mode mode, struct db **ret_db, struct err *err) must_check;
void db_close(struct db *db);

enum db_dialect db_dialect(const struct db *db);
const char *db_place(const struct db *db);

/* Whether there is nothing at a place, or an empty database. */
bool db_is_missing(const char *place);

/* Reads all of the database and finds out whether it is whole: database_damaged. */
int db_check(struct db *db, struct err *err) must_check;

/* From now on the caller writes: journal, durability and foreign keys are set up for that. */
int db_configure(struct db *db, struct err *err) must_check;

/* Whether rows that refer to others are checked. Migrations are applied without: a step that makes a table anew drops
 * the old one, to which rows refer. Outside of a transaction. */
int db_check_references(struct db *db, bool checks, struct err *err) must_check;

/* Sets room aside, so that small changes can still be written on a full disk. A failure is logged. Once, when the
 * caller has decided to keep the database; db_close() then leaves all of it in its main file. */
void db_reserve(struct db *db);

/* Waits until all that was committed is on the disk; it may take long. Needs no lock. A negative errno. */
int db_sync(const struct db *db) must_check;

/* How many bytes a copy may need. Needs no lock. */
int db_size(const struct db *db, uint64_t *ret_bytes, struct err *err) must_check;

/* Copies the database as it is now into a new file; the caller removes what a failure leaves. */
int db_backup_to(struct db *db, const char *path, struct err *err) must_check;

/* How many migrations the database has had (schema.h); written in the transaction of a migration. */
int db_read_version(struct db *db, size_t *ret_version, struct err *err) must_check;
int db_write_version(struct db *db, size_t version, struct err *err) must_check;

/* --- transactions --- */

/* A transaction of DB_OWN has the right to write from its begin; one of DB_READ sees one state until its end. After
 * a failed commit the transaction is still to be rolled back. */
int db_begin(struct db *db, struct err *err) must_check;
int db_commit(struct db *db, struct err *err) must_check;
void db_rollback(struct db *db);

/* --- statements --- */

enum db_result { DB_FAILED = -1, DB_DONE, DB_ROW };

int db_prepare(struct db *db, const char *sql, struct db_stmt **ret_stmt, struct err *err)
	must_check;
void db_finalize(struct db_stmt *stmt); /* NULL is allowed */

/* Values are copied. A value that could not be bound makes the next db_step() fail: nothing runs with a NULL in the
 * place of an owner. */
void db_bind_int(struct db_stmt *stmt, int at, int64_t value);
void db_bind_text(struct db_stmt *stmt, int at, const char *text);
void db_bind_text_owned(
	struct db_stmt *stmt, int at, char *text); /* not copied; freed with free() */
void db_bind_blob(struct db_stmt *stmt, int at, const void *bytes, size_t len);

/* Gives the next row. */
enum db_result db_step(struct db_stmt *stmt);

/* Ends the run of a statement and forgets the values that were bound. What db_error() says stays. */
void db_reset(struct db_stmt *stmt);

/* Columns of the current row, counted from 0. A NULL is 0, or a NULL pointer. */
int64_t db_column_int(struct db_stmt *stmt, int column);
const char *db_column_text(struct db_stmt *stmt, int column);
const void *db_column_blob(struct db_stmt *stmt, int column, size_t *ret_len);
size_t db_column_bytes(struct db_stmt *stmt, int column); /* of a text, without its NUL */

/* Steps a statement that gives no rows, and resets it. */
int db_run(struct db_stmt *stmt, const char *what, struct err *err) must_check;

/* Runs one or several statements without parameters. */
int db_exec(struct db *db, const char *sql, const char *what, struct err *err) must_check;

/* How many rows the last statement inserted, changed or deleted. */
int64_t db_changes(const struct db *db);

/* --- failures --- */

/* Explains why the last db_step() failed; `what` is what was tried. */
int db_error(struct db *db, const char *what, struct err *err);

enum db_conflict {
	DB_CONFLICT_NONE,   /* the last db_step() failed for another reason */
	DB_CONFLICT_KEY,    /* there is a row of that primary key */
	DB_CONFLICT_UNIQUE, /* there is a row of those values, which a unique index allows once */
};

enum db_conflict db_conflict(const struct db *db);
