/* SPDX-License-Identifier: Apache-2.0 */
/* The generation of a store, and the stamp beside the workspaces that follows it (generation.h). */
#include "base/log.h"
#include "store/store_private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int read_number(struct store *store, uint64_t *ret_number, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_GENERATION_GET);
	int code = db_step(stmt);

	if (code == DB_ROW)
		*ret_number = (uint64_t)db_column_int(stmt, 0);
	db_reset(stmt);
	return code == DB_ROW ? 0 : store_fail(store, "read the generation", err);
}

static void write_stamp(struct store *store, bool is_synced)
{
	int r = generation_write(&store->generation, store->stamp_fd, is_synced);

	if (r < 0 && !store->is_stamp_failing)
		log_error("the stamp of the workspaces cannot be written: %s", strerror(-r));
	store->is_stamp_failing = r < 0;
}

void store_stamp(struct store *store)
{
	struct err err;

	if (store->stamp_fd < 0)
		return;
	if (read_number(store, &store->generation.written, &err) < 0)
		log_error("%s", err.message);
	else
		write_stamp(store, false);
}

void store_stamp_durably(struct store *store)
{
	uint64_t written;
	int r;

	if (store->stamp_fd < 0)
		return;
	pthread_mutex_lock(&store->lock);
	written = store->generation.written;
	r = written == store->generation.durable;
	pthread_mutex_unlock(&store->lock);
	if (r)
		return;
	r = db_sync(store->db); /* without the lock: it may take long */
	if (r < 0) {
		log_error("%s cannot be synced: %s", store->path, strerror(-r));
		return;
	}
	pthread_mutex_lock(&store->lock);
	store->generation.durable = written;
	write_stamp(store, false);
	pthread_mutex_unlock(&store->lock);
	if (fdatasync(store->stamp_fd) < 0)
		log_error("the stamp of the workspaces cannot be synced: %s", strerror(errno));
}

int store_generation_raise(struct store *store, uint64_t floor, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_GENERATION_RAISE);
	int r;

	db_bind_int(stmt, 1, (int64_t)floor);
	r = store_forgive_full(db_run(stmt, "raise the generation", err), err);
	if (r == 0)
		r = read_number(store, &store->generation.written, err);
	if (r == 0)
		store_stamp_durably(store);
	return r;
}

uint64_t store_generation(struct store *store)
{
	uint64_t number;

	pthread_mutex_lock(&store->lock);
	number = store->generation.written;
	pthread_mutex_unlock(&store->lock);
	return number;
}
