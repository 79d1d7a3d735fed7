/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_ops.h over SQLite: one file in WAL mode, opened by one daemon.
 *
 * The parameters of db.h (?1) are SQLite's own form, so statements are not rewritten.
 */
#include "store/db/db_sqlite.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/db/db_ops.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS		 5000 /* how long a statement waits for another process that has the file */
#define LOG_HEADER_BYTES 32
#define LOG_BYTES_TEXT	 "8388608"
#define LOG_BYTES	 (8 << 20)

struct statement {
	struct db_stmt base;
	sqlite3_stmt *lib;
	int bind_code; /* of the first value that could not be bound */
};

struct database {
	struct db base;
	enum db_mode mode;
	sqlite3 *lib;
	struct statement begin, commit, rollback; /* prepared at their first use */
	int bind_code;	  /* the last step failed for this, and not in the library */
	bool is_reserved; /* at the end the log is moved into the database */
};

/* Every connection and statement that comes here was made here. */
static struct database *database_of(const struct db *db)
{
	assert(db->ops == &db_sqlite_ops);
	return (struct database *)db;
}

static struct statement *statement_of(struct db_stmt *stmt)
{
	assert(stmt->db->ops == &db_sqlite_ops);
	return (struct statement *)stmt;
}

struct sqlite3 *db_sqlite_handle(struct db *db)
{
	return database_of(db)->lib;
}

/* --- failures --- */

static int last_code(const struct database *db)
{
	if (!db->lib)
		return SQLITE_NOMEM;
	return db->bind_code ? db->bind_code : sqlite3_extended_errcode(db->lib);
}

static const char *last_message(const struct database *db)
{
	return db->lib && !db->bind_code ? sqlite3_errmsg(db->lib) : sqlite3_errstr(last_code(db));
}

/* SQLite has no code of its own for a full disk under its shared memory, or behind fsync. */
static bool is_full(const struct database *db, int code)
{
	int errnum = db->lib ? sqlite3_system_errno(db->lib) : 0;

	if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE)
		return true;
	return (code & 0xff) == SQLITE_IOERR && (errnum == ENOSPC || errnum == EDQUOT);
}

static int explain_damage(
	const struct database *db, const char *what, const char *detail, struct err *err)
{
	return err_explain(err, ERR_INTERNAL, "database_damaged", DB_REMEDY_RESTORE,
		"%s: the database %s is damaged: %s", what, db->base.place, detail);
}

static int explain(struct database *db, const char *what, struct err *err)
{
	const char *detail = last_message(db);
	int code = last_code(db);

	if (is_full(db, code))
		return err_explain(err, ERR_NO_SPACE, NULL, "free space below the data directory",
			"%s: the disk that holds the state is full", what);
	switch (code & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return explain_damage(db, what, detail, err);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_explain(err, ERR_UNAVAILABLE, "database_busy",
			"end the other process that has it open, then try again",
			"%s: another process holds the database", what);
	case SQLITE_NOMEM:
		return err_explain(err, ERR_UNAVAILABLE, NULL, "try again when memory is free",
			"%s: no memory for the database", what);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return err_explain(err, ERR_INTERNAL, "database_unavailable",
			"see that the file and its directory exist and belong to the daemon's user",
			"%s: the database %s cannot be opened for writing: %s", what,
			db->base.place, detail);
	default:
		return err_explain(err, ERR_INTERNAL, "database_failed",
			"see the host's log for errors of its disk; `sandlot restore --list` shows "
			"the backups",
			"%s: the database %s: %s", what, db->base.place, detail);
	}
}

static int explain_last(struct db *base, const char *what, struct err *err)
{
	return explain(database_of(base), what, err);
}

static enum db_conflict find_conflict(const struct db *base)
{
	switch (last_code(database_of(base))) {
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return DB_CONFLICT_KEY;
	case SQLITE_CONSTRAINT_UNIQUE:
		return DB_CONFLICT_UNIQUE;
	default:
		return DB_CONFLICT_NONE;
	}
}

/* --- statements --- */

/* One that is kept for long is told so: its memory then comes from the heap, not from the lookaside of others. */
static int init_statement(
	struct database *db, const char *sql, unsigned flags, struct statement *stmt)
{
	*stmt = (struct statement){.base.db = &db->base};
	db->bind_code = 0;
	return sqlite3_prepare_v3(db->lib, sql, -1, flags, &stmt->lib, NULL);
}

static int prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt, struct err *err)
{
	struct database *db = database_of(base);
	struct statement *stmt = mem_new(sizeof(*stmt));
	/* Statements of a reader are used once. */
	unsigned flags = db->mode == DB_OWN ? SQLITE_PREPARE_PERSISTENT : 0;

	if (init_statement(db, sql, flags, stmt) != SQLITE_OK) {
		free(stmt);
		return explain(db, sql, err);
	}
	*ret_stmt = &stmt->base;
	return 0;
}

static void finalize(struct db_stmt *base)
{
	struct statement *stmt = statement_of(base);

	sqlite3_finalize(stmt->lib);
	free(stmt);
}

static void note_bind(struct db_stmt *base, int code)
{
	struct statement *stmt = statement_of(base);

	if (code != SQLITE_OK && !stmt->bind_code)
		stmt->bind_code = code;
}

static void bind_int(struct db_stmt *stmt, int at, int64_t value)
{
	note_bind(stmt, sqlite3_bind_int64(statement_of(stmt)->lib, at, value));
}

static void bind_text(struct db_stmt *stmt, int at, const char *text)
{
	note_bind(stmt, sqlite3_bind_text(statement_of(stmt)->lib, at, text, -1, SQLITE_TRANSIENT));
}

static void bind_text_owned(struct db_stmt *stmt, int at, char *text)
{
	note_bind(stmt, sqlite3_bind_text(statement_of(stmt)->lib, at, text, -1, free));
}

static void bind_blob(struct db_stmt *stmt, int at, const void *bytes, size_t len)
{
	note_bind(stmt,
		sqlite3_bind_blob64(statement_of(stmt)->lib, at, bytes, len, SQLITE_TRANSIENT));
}

static enum db_result step(struct db_stmt *base)
{
	struct statement *stmt = statement_of(base);

	database_of(base->db)->bind_code = stmt->bind_code;
	if (stmt->bind_code)
		return DB_FAILED;
	switch (sqlite3_step(stmt->lib)) {
	case SQLITE_ROW:
		return DB_ROW;
	case SQLITE_DONE:
		return DB_DONE;
	default:
		return DB_FAILED;
	}
}

static void reset(struct db_stmt *base)
{
	struct statement *stmt = statement_of(base);

	sqlite3_reset(stmt->lib);
	sqlite3_clear_bindings(stmt->lib);
	stmt->bind_code = 0;
}

static int64_t column_int(struct db_stmt *stmt, int column)
{
	return sqlite3_column_int64(statement_of(stmt)->lib, column);
}

static const char *column_text(struct db_stmt *stmt, int column)
{
	return (const char *)sqlite3_column_text(statement_of(stmt)->lib, column);
}

static const void *column_blob(struct db_stmt *stmt, int column, size_t *ret_len)
{
	const void *bytes = sqlite3_column_blob(statement_of(stmt)->lib, column);

	*ret_len = (size_t)sqlite3_column_bytes(statement_of(stmt)->lib, column);
	return bytes;
}

static size_t column_bytes(struct db_stmt *stmt, int column)
{
	return (size_t)sqlite3_column_bytes(statement_of(stmt)->lib, column);
}

static int exec(struct db *base, const char *sql, const char *what, struct err *err)
{
	struct database *db = database_of(base);

	db->bind_code = 0;
	return sqlite3_exec(db->lib, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
									 : explain(db, what, err);
}

static int64_t count_changes(const struct db *base)
{
	return sqlite3_changes64(database_of(base)->lib);
}

/* --- transactions --- */

static int run_kept(struct database *db, struct statement *stmt, const char *sql, const char *what,
	struct err *err)
{
	if (!stmt->lib && init_statement(db, sql, SQLITE_PREPARE_PERSISTENT, stmt) != SQLITE_OK)
		return explain(db, what, err);
	return db_run(&stmt->base, what, err);
}

/* IMMEDIATE: a transaction that cannot write fails at its begin, not in its middle. */
static int begin(struct db *base, struct err *err)
{
	struct database *db = database_of(base);
	const char *sql = db->mode == DB_OWN ? "BEGIN IMMEDIATE" : "BEGIN";

	return run_kept(db, &db->begin, sql, "begin", err);
}

static int commit(struct db *base, struct err *err)
{
	struct database *db = database_of(base);

	return run_kept(db, &db->commit, "COMMIT", "commit", err);
}

/* A failure that ended the transaction by itself leaves nothing to roll back. */
static void rollback(struct db *base)
{
	struct database *db = database_of(base);

	(void)!run_kept(db, &db->rollback, "ROLLBACK", "roll back", NULL);
}

/* --- the version of the schema --- */

static int read_version(struct db *base, size_t *ret_version, struct err *err)
{
	struct database *db = database_of(base);
	struct statement stmt;
	int r = 0;

	if (init_statement(db, "PRAGMA user_version", 0, &stmt) == SQLITE_OK &&
		step(&stmt.base) == DB_ROW)
		*ret_version = (size_t)column_int(&stmt.base, 0);
	else
		r = explain(db, "read the schema version", err);
	sqlite3_finalize(stmt.lib);
	return r;
}

static int write_version(struct db *base, size_t version, struct err *err)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu", version);
	return exec(base, sql, "write the schema version", err);
}

/* --- the whole database --- */

/*
 * Not the quick form: a row that an index does not find is a row that is missing. With 1,000 sandboxes it
 * takes 60 ms, and 0.3 s if the audit log has its 250,000 entries (quick_check: 33 ms and 0.12 s).
 */
static int check(struct db *base, struct err *err)
{
	static const char what[] = "check the database";
	struct database *db = database_of(base);
	struct statement stmt;
	const char *text;
	int r = 0;

	if (init_statement(db, "PRAGMA integrity_check(1)", 0, &stmt) != SQLITE_OK ||
		step(&stmt.base) != DB_ROW) {
		r = explain(db, what, err);
	} else {
		text = column_text(&stmt.base, 0);
		if (!text || strcmp(text, "ok") != 0)
			r = explain_damage(db, what, text ? text : "", err);
	}
	sqlite3_finalize(stmt.lib);
	return r;
}

static int backup_to(struct db *base, const char *path, struct err *err)
{
	struct database *db = database_of(base);
	struct statement stmt;
	int r;

	if (init_statement(db, "VACUUM INTO ?1", 0, &stmt) == SQLITE_OK) {
		bind_text(&stmt.base, 1, path);
		r = db_run(&stmt.base, "write a backup", err);
	} else {
		r = explain(db, "write a backup", err);
	}
	sqlite3_finalize(stmt.lib);
	return r;
}

static bool is_missing(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? errno == ENOENT : st.st_size == 0;
}

static int read_size(const struct db *base, uint64_t *ret_bytes, struct err *err)
{
	struct stat st;

	if (stat(base->place, &st) < 0)
		return err_sys(err, "see how large the database is");
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

/* --- the log (WAL) --- */

static int open_log(const struct db *base, int flags)
{
	auto_free char *path = mem_printf("%s-wal", base->place);

	return open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/*
 * What is committed is in the log, or was folded into the database, which SQLite syncs both. No lock of
 * SQLite hangs on a descriptor of the log, so one may be closed.
 */
static int sync_log(const struct db *base)
{
	auto_fd int fd = open_log(base, O_RDONLY);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fdatasync(fd) < 0 ? -errno : 0;
}

/*
 * The blocks of the log are there before they are written to, and stay when we close: so on a full disk there is
 * still room to write down that a sandbox was stopped or purged, and purging is what makes room. The log begins anew
 * after half of that, when its content was moved into the database, which seldom grows.
 */
static void reserve(struct db *base)
{
	struct database *db = database_of(base);
	const char *file = sqlite3_db_filename(db->lib, "main");
	auto_fd int fd = -1;
	int stays = 1;

	sqlite3_db_config(db->lib, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	/* A database in memory has no log, and its name is no path. */
	if (!file || !file[0])
		return;
	db->is_reserved = true;
	fd = open_log(&db->base, O_WRONLY | O_CREAT);
	sqlite3_file_control(db->lib, NULL, SQLITE_FCNTL_PERSIST_WAL, &stays);
	if (fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_BYTES) < 0)
		log_warning("no room is set aside for the state on a full disk: %s-wal: %s",
			db->base.place, strerror(errno));
}

/* Closes a database whose log keeps its blocks. Nothing of the log is left to be read if all of it was moved: else it
 * would be taken for that of a database that somebody puts in the place of this one. */
static void close_reserved(struct database *db)
{
	static const char nothing[LOG_HEADER_BYTES];
	int in_log = -1, moved = -1;
	int code = sqlite3_wal_checkpoint_v2(
		db->lib, NULL, SQLITE_CHECKPOINT_RESTART, &in_log, &moved);
	auto_fd int fd = -1;

	/* Without a limit it is not cut. */
	sqlite3_exec(db->lib, "PRAGMA journal_size_limit = -1", NULL, NULL, NULL);
	/* On a full disk the database may not take it; then it is what the next start needs. */
	if (sqlite3_close(db->lib) != SQLITE_OK || code != SQLITE_OK || in_log < 0 ||
		in_log != moved)
		return;
	fd = open_log(&db->base, O_WRONLY | O_CREAT);
	if (fd >= 0)
		(void)!pwrite(fd, nothing, sizeof(nothing), 0);
}

/* --- connections --- */

/* NORMAL: no fsync at each commit; the log is synced before it is folded into the database. */
static int configure(struct db *base, struct err *err)
{
	return exec(base,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
		"PRAGMA cache_size = -2048; PRAGMA journal_size_limit = " LOG_BYTES_TEXT ";",
		"configure the database", err);
}

static int check_references(struct db *base, bool checks, struct err *err)
{
	return exec(base, checks ? "PRAGMA foreign_keys = ON" : "PRAGMA foreign_keys = OFF",
		"change the schema", err);
}

static void close_database(struct db *base)
{
	struct database *db = database_of(base);

	sqlite3_finalize(db->begin.lib);
	sqlite3_finalize(db->commit.lib);
	sqlite3_finalize(db->rollback.lib);
	if (db->is_reserved)
		close_reserved(db);
	else
		sqlite3_close(db->lib);
	free(base->place);
	free(db);
}

static int open_database(const char *path, enum db_mode mode, struct db **ret_db, struct err *err)
{
	int flags =
		mode == DB_OWN ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
	struct database *db = mem_new(sizeof(*db));
	int r;

	db->base = (struct db){.ops = &db_sqlite_ops, .place = mem_strdup(path)};
	db->mode = mode;
	if (sqlite3_open_v2(path, &db->lib, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		r = explain(
			db, mode == DB_OWN ? "open the state" : "open the state for reading", err);
		close_database(&db->base);
		return r;
	}
	sqlite3_busy_timeout(db->lib, BUSY_MS);
	/* A database that the caller refuses is left as it was: its log is not folded into it. */
	if (mode == DB_OWN)
		sqlite3_db_config(db->lib, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	*ret_db = &db->base;
	return 0;
}

const struct db_ops db_sqlite_ops = {
	.name = "SQLite",
	.dialect = DB_SQLITE,
	.open = open_database,
	.close = close_database,
	.is_missing = is_missing,
	.check = check,
	.configure = configure,
	.check_references = check_references,
	.reserve = reserve,
	.sync = sync_log,
	.size = read_size,
	.backup_to = backup_to,
	.read_version = read_version,
	.write_version = write_version,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.prepare = prepare,
	.finalize = finalize,
	.bind_int = bind_int,
	.bind_text = bind_text,
	.bind_text_owned = bind_text_owned,
	.bind_blob = bind_blob,
	.step = step,
	.reset = reset,
	.column_int = column_int,
	.column_text = column_text,
	.column_blob = column_blob,
	.column_bytes = column_bytes,
	.exec = exec,
	.changes = count_changes,
	.error = explain_last,
	.conflict = find_conflict,
};
