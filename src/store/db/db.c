/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/db.h"

#include "base/format.h"
#include "base/mem.h"
#include "store/db/db_ops.h"
#include "store/db/db_sqlite.h"

#include <string.h>

/* One for each kind of database. */
static const struct db_ops *const kinds[] = {
	&db_sqlite_ops,
};

/* --- connections --- */

/* Returns the length of the scheme of a URL; 0: the place is a path. */
static size_t scheme_len(const char *place)
{
	size_t len = strspn(place, "abcdefghijklmnopqrstuvwxyz0123456789+-.");

	return len > 0 && strncmp(place + len, "://", 3) == 0 ? len : 0;
}

static const struct db_ops *find_kind(const char *place)
{
	size_t len = scheme_len(place);

	for (size_t i = 0; i < array_len(kinds); i++) {
		const char *scheme = kinds[i]->scheme ? kinds[i]->scheme : "";

		if (strlen(scheme) == len && strncmp(place, scheme, len) == 0)
			return kinds[i];
	}
	return NULL;
}

/* A URL may hold a password, so no more than its scheme is told. */
static int refuse_unknown(const char *place, struct err *err)
{
	char names[120] = "";
	size_t len = 0;

	for (size_t i = 0; i < array_len(kinds); i++)
		len = format_append(names, sizeof(names), len, "%s%s (%s%s)", i > 0 ? ", " : "",
			kinds[i]->name, kinds[i]->scheme ? kinds[i]->scheme : "a path",
			kinds[i]->scheme ? "://" : "");
	return err_explain(err, ERR_INVALID, "database_unknown", NULL,
		"there is no database for %.*s://; the databases are: %s",
		(int)(scheme_len(place) < 32 ? scheme_len(place) : 32), place, names);
}

int db_open(const char *place, enum db_mode mode, struct db **ret_db, struct err *err)
{
	const struct db_ops *ops = find_kind(place);

	return ops ? ops->open(place, mode, ret_db, err) : refuse_unknown(place, err);
}

void db_close(struct db *db)
{
	if (db)
		db->ops->close(db);
}

bool db_is_missing(const char *place)
{
	const struct db_ops *ops = find_kind(place);

	return ops && ops->is_missing(place);
}

enum db_dialect db_dialect(const struct db *db)
{
	return db->ops->dialect;
}

const char *db_place(const struct db *db)
{
	return db->place;
}

int db_check(struct db *db, struct err *err)
{
	return db->ops->check(db, err);
}

int db_configure(struct db *db, struct err *err)
{
	return db->ops->configure(db, err);
}

int db_check_references(struct db *db, bool checks, struct err *err)
{
	return db->ops->check_references ? db->ops->check_references(db, checks, err) : 0;
}

void db_reserve(struct db *db)
{
	if (db->ops->reserve)
		db->ops->reserve(db);
}

int db_sync(const struct db *db)
{
	return db->ops->sync ? db->ops->sync(db) : 0;
}

int db_size(const struct db *db, uint64_t *ret_bytes, struct err *err)
{
	return db->ops->size(db, ret_bytes, err);
}

int db_backup_to(struct db *db, const char *path, struct err *err)
{
	return db->ops->backup_to(db, path, err);
}

int db_read_version(struct db *db, size_t *ret_version, struct err *err)
{
	return db->ops->read_version(db, ret_version, err);
}

int db_write_version(struct db *db, size_t version, struct err *err)
{
	return db->ops->write_version(db, version, err);
}

/* --- transactions --- */

int db_begin(struct db *db, struct err *err)
{
	return db->ops->begin(db, err);
}

int db_commit(struct db *db, struct err *err)
{
	return db->ops->commit(db, err);
}

void db_rollback(struct db *db)
{
	db->ops->rollback(db);
}

/* --- statements --- */

int db_prepare(struct db *db, const char *sql, struct db_stmt **ret_stmt, struct err *err)
{
	return db->ops->prepare(db, sql, ret_stmt, err);
}

void db_finalize(struct db_stmt *stmt)
{
	if (stmt)
		stmt->db->ops->finalize(stmt);
}

void db_bind_int(struct db_stmt *stmt, int at, int64_t value)
{
	stmt->db->ops->bind_int(stmt, at, value);
}

void db_bind_text(struct db_stmt *stmt, int at, const char *text)
{
	stmt->db->ops->bind_text(stmt, at, text);
}

void db_bind_text_owned(struct db_stmt *stmt, int at, char *text)
{
	stmt->db->ops->bind_text_owned(stmt, at, text);
}

void db_bind_blob(struct db_stmt *stmt, int at, const void *bytes, size_t len)
{
	stmt->db->ops->bind_blob(stmt, at, bytes, len);
}

enum db_result db_step(struct db_stmt *stmt)
{
	return stmt->db->ops->step(stmt);
}

void db_reset(struct db_stmt *stmt)
{
	stmt->db->ops->reset(stmt);
}

int64_t db_column_int(struct db_stmt *stmt, int column)
{
	return stmt->db->ops->column_int(stmt, column);
}

const char *db_column_text(struct db_stmt *stmt, int column)
{
	return stmt->db->ops->column_text(stmt, column);
}

const void *db_column_blob(struct db_stmt *stmt, int column, size_t *ret_len)
{
	return stmt->db->ops->column_blob(stmt, column, ret_len);
}

size_t db_column_bytes(struct db_stmt *stmt, int column)
{
	return stmt->db->ops->column_bytes(stmt, column);
}

int db_run(struct db_stmt *stmt, const char *what, struct err *err)
{
	enum db_result result = db_step(stmt);

	db_reset(stmt);
	return result == DB_DONE ? 0 : db_error(stmt->db, what, err);
}

int db_exec(struct db *db, const char *sql, const char *what, struct err *err)
{
	return db->ops->exec(db, sql, what, err);
}

int64_t db_changes(const struct db *db)
{
	return db->ops->changes(db);
}

/* --- failures --- */

int db_error(struct db *db, const char *what, struct err *err)
{
	return db->ops->error(db, what, err);
}

enum db_conflict db_conflict(const struct db *db)
{
	return db->ops->conflict(db);
}
