/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of database implements: a table of functions, each with the contract of the function of db.h that has
 * its name. Its own structs begin with struct db and struct db_stmt. The table is a row in db.c.
 */
#pragma once

#include "store/db/db.h"

struct db_ops {
	const char *name;   /* what people call it */
	const char *scheme; /* of its URLs; NULL: a place that is a path */
	enum db_dialect dialect;

	int (*open)(const char *place, enum db_mode mode, struct db **ret_db, struct err *err);
	void (*close)(struct db *db);
	bool (*is_missing)(const char *place);
	int (*check)(struct db *db, struct err *err);
	int (*configure)(struct db *db, struct err *err);
	int (*check_references)(struct db *db, bool checks, struct err *err); /* NULL: no need */
	void (*reserve)(struct db *db);	  /* NULL: the server does what it can */
	int (*sync)(const struct db *db); /* NULL: what is committed is on the disk */
	int (*size)(const struct db *db, uint64_t *ret_bytes, struct err *err);
	int (*backup_to)(struct db *db, const char *path, struct err *err);
	int (*read_version)(struct db *db, size_t *ret_version, struct err *err);
	int (*write_version)(struct db *db, size_t version, struct err *err);

	int (*begin)(struct db *db, struct err *err);
	int (*commit)(struct db *db, struct err *err);
	void (*rollback)(struct db *db);

	int (*prepare)(struct db *db, const char *sql, struct db_stmt **ret_stmt, struct err *err);
	void (*finalize)(struct db_stmt *stmt); /* not NULL */
	void (*bind_int)(struct db_stmt *stmt, int at, int64_t value);
	void (*bind_text)(struct db_stmt *stmt, int at, const char *text);
	void (*bind_text_owned)(struct db_stmt *stmt, int at, char *text);
	void (*bind_blob)(struct db_stmt *stmt, int at, const void *bytes, size_t len);
	enum db_result (*step)(struct db_stmt *stmt);
	void (*reset)(struct db_stmt *stmt);
	int64_t (*column_int)(struct db_stmt *stmt, int column);
	const char *(*column_text)(struct db_stmt *stmt, int column);
	const void *(*column_blob)(struct db_stmt *stmt, int column, size_t *ret_len);
	size_t (*column_bytes)(struct db_stmt *stmt, int column);
	int (*exec)(struct db *db, const char *sql, const char *what, struct err *err);
	int64_t (*changes)(const struct db *db);

	int (*error)(struct db *db, const char *what, struct err *err);
	enum db_conflict (*conflict)(const struct db *db);
};

/* Embedded first in each kind's own struct. */
struct db {
	const struct db_ops *ops;
	char *place; /* freed by the kind's close */
};

/* The same. */
struct db_stmt {
	struct db *db;
};
