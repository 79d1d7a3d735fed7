/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/log.h"
#include "store/db/schema.h"
#include "store/store_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define STORE_REMEDY                                                                               \
	"sandlot restore brings back the last backup; sandlot restore --accept starts with it as " \
	"it is and keeps what it does not know as orphans"

/* --- statements --- */

int store_fail(struct store *store, const char *what, struct err *err)
{
	return db_error(store->db, what, err);
}

int store_forgive_full(int r, const struct err *err)
{
	if (r == 0 || err->kind != ERR_NO_SPACE)
		return r;
	log_warning("%s", err->message);
	return 0;
}

int store_prepare(struct db *db, enum query query, struct db_stmt **ret_stmt, struct err *err)
{
	return db_prepare(db, sql_text(db_dialect(db), query), ret_stmt, err);
}

unsigned store_page(unsigned left)
{
	return left < STORE_PAGE ? left : STORE_PAGE;
}

struct db_stmt *store_use(struct store *store, enum query query)
{
	struct db_stmt *stmt = store->stmts[query];

	db_reset(stmt);
	return stmt;
}

void store_bind_optional(struct db_stmt *stmt, int at, const char *text)
{
	if (text && text[0])
		db_bind_text(stmt, at, text);
}

void store_bind_owner(struct db_stmt *stmt, const struct owner *owner)
{
	if (!owner)
		return;
	db_bind_text(stmt, 31, owner->organization);
	db_bind_text(stmt, 32, owner->user);
}

void store_bind_json(struct db_stmt *stmt, int at, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	assert(text);
	db_bind_text_owned(stmt, at, text);
}

void store_read_text(struct db_stmt *stmt, int column, char *text, size_t size)
{
	const char *value = db_column_text(stmt, column);

	snprintf(text, size, "%s", value ? value : "");
}

json_t *store_read_json(struct db_stmt *stmt, int column)
{
	const char *text = db_column_text(stmt, column);
	json_t *value = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;

	return value ? value : json_null();
}

/* --- after the schema --- */

static int prepare_all(struct store *store, struct err *err)
{
	int r = 0;

	for (int q = 0; q < Q_COUNT && r == 0; q++)
		r = store_prepare(store->db, (enum query)q, &store->stmts[q], err);
	return r;
}

/* A start that a daemon before us did not finish holds nothing any more. */
static int forget_claims(struct store *store, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_SANDBOX_FORGET_CLAIMS);

	return store_forgive_full(db_run(stmt, "forget unfinished starts", err), err);
}

/* --- what is there --- */

static int refuse_empty(const char *path, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, "database_empty", STORE_REMEDY,
		"the database %s is missing or empty, but there are workspaces: it was lost, or "
		"this is another one",
		path);
}

static int refuse_older(const char *path, uint64_t number, uint64_t floor, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, "database_older", STORE_REMEDY,
		"the database %s is older than the workspaces: it is of generation %llu, they have "
		"seen %llu",
		path, (unsigned long long)number, (unsigned long long)floor);
}

/* The number of a database whose statements are not prepared yet. */
static int read_generation(struct db *db, int64_t *ret_number, struct err *err)
{
	struct db_stmt *stmt = NULL;
	int r = store_prepare(db, Q_GENERATION_GET, &stmt, err);

	if (r == 0 && db_step(stmt) == DB_ROW)
		*ret_number = db_column_int(stmt, 0);
	else if (r == 0)
		r = db_error(db, "read the generation", err);
	db_finalize(stmt);
	return r;
}

/* Whether it is the database of these workspaces. Changes nothing. */
static int check_generation(struct store *store, const struct store_options *options,
	size_t version, uint64_t floor, struct err *err)
{
	int64_t number = 0;
	int r = 0;

	if (version == 0)
		return options->has_workspaces && !options->is_accepted
			       ? refuse_empty(store->path, err)
			       : 0;
	if (version >= SCHEMA_WITH_GENERATION)
		r = read_generation(store->db, &number, err);
	if (r < 0)
		return r;
	if ((uint64_t)number < floor && !options->is_accepted)
		return refuse_older(store->path, (uint64_t)number, floor, err);
	if (version < schema_version() && options->backup.dir) {
		struct err ignored;

		if (store_backup_from(store->db, &options->backup, (uint64_t)number, &ignored) < 0)
			log_error("no backup before the migration: %s", ignored.message);
	}
	return 0;
}

/* --- opening --- */

static int open_database(struct store *store, const struct store_options *options, struct err *err)
{
	uint64_t floor =
		options->stamp_fd < 0 ? 0 : generation_floor(&store->generation, options->stamp_fd);
	uint64_t backed_up;
	size_t version = 0;
	int r;

	if (db_is_missing(store->path) && options->has_workspaces && !options->is_accepted)
		return refuse_empty(store->path, err);
	/* A database that is refused is left as it was: nothing is written before db_configure(). */
	if ((r = db_open(store->path, DB_OWN, &store->db, err)) < 0 ||
		(r = db_check(store->db, err)) < 0 ||
		(r = db_read_version(store->db, &version, err)) < 0 ||
		(r = check_generation(store, options, version, floor, err)) < 0 ||
		(r = db_configure(store->db, err)) < 0 ||
		(r = schema_migrate(store->db, err)) < 0 || (r = prepare_all(store, err)) < 0)
		return r;
	store->stamp_fd = options->stamp_fd;
	/* Backups sort by generation: that of a database which began anew, without a stamp, would be the oldest. */
	backed_up = store_backup_generation(options->backup.dir);
	return store_generation_raise(store, floor > backed_up ? floor : backed_up, err);
}

int store_open_checked(const char *path, const struct store_options *options,
	struct store **ret_store, struct err *err)
{
	struct store *store = mem_new(sizeof(*store));
	int r;

	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->claims_lock, NULL);
	pthread_mutex_init(&store->tokens_lock, NULL);
	pthread_mutex_init(&store->reader_lock, NULL);
	store->path = mem_strdup(path);
	store->stamp_fd = -1;
	generation_init(&store->generation);
	quota_clear(&store->default_quotas[0]);
	quota_clear(&store->default_quotas[1]);
	r = open_database(store, options, err);
	if (r < 0 && err && (err->kind == ERR_NO_SPACE || err->kind == ERR_UNAVAILABLE))
		err_prefix(err, "the database %s", path); /* here it is for the operator */
	if (r == 0)
		db_reserve(store->db);
	if (r == 0)
		r = store_clock_load(store, err);
	if (r == 0)
		r = forget_claims(store, err);
	if (r == 0)
		r = store_audit_load(store, err);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

int store_open(const char *path, struct store **ret_store, struct err *err)
{
	return store_open_checked(path, &(struct store_options){.stamp_fd = -1}, ret_store, err);
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_stamp_durably(store);
	for (int q = 0; q < Q_COUNT; q++)
		db_finalize(store->stmts[q]);
	db_close(store->db);
	pthread_mutex_destroy(&store->reader_lock);
	free(store->path);
	pthread_mutex_destroy(&store->tokens_lock);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

/* --- a connection for a reader --- */

/* One after another: the library keeps the descriptor of a closed connection for the next one, and so
 * there is never more than one of them. */
int store_reader_open(struct store *store, struct store_reader *reader, struct err *err)
{
	reader->lock = &store->reader_lock;
	pthread_mutex_lock(reader->lock);
	return db_open(store->path, DB_READ, &reader->db, err);
}

void store_reader_close(struct store_reader *reader)
{
	db_close(reader->db);
	if (reader->lock)
		pthread_mutex_unlock(reader->lock);
}
