/* SPDX-License-Identifier: Apache-2.0 */
#include "store/template/store_layer.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <string.h>

/* --- with the lock held --- */

struct row {
	bool is_gone;
	int python;
	int64_t bytes;
};

/* The row of a name: 1, or 0 if there is none. */
static int find(struct store *store, const char *name, struct row *ret_row, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_LAYER_GET);
	int code;

	db_bind_text(stmt, 1, name);
	code = db_step(stmt);
	if (code == DB_ROW)
		*ret_row = (struct row){db_column_int(stmt, 0) != 0, (int)db_column_int(stmt, 1),
			db_column_int(stmt, 2)};
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "look for a layer", err);
	return code == DB_ROW;
}

/* Runs a statement about one row: how many it changed. */
static int change(struct store *store, struct db_stmt *stmt, const char *what, struct err *err)
{
	int r = db_run(stmt, what, err);

	return r < 0 ? r : (int)db_changes(store->db);
}

static struct db_stmt *use_for(struct store *store, enum query query, const char *name)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, name);
	return stmt;
}

static int put(struct store *store, const char *name, bool is_stack, struct err *err)
{
	struct db_stmt *stmt = use_for(store, Q_LAYER_PUT, name);

	db_bind_int(stmt, 2, is_stack);
	db_bind_int(stmt, 3, is_stack ? 0 : -1);
	db_bind_int(stmt, 4, store_clock_ms(store));
	return db_run(stmt, "note a layer", err);
}

static int unmark(struct store *store, const char *name, struct err *err)
{
	struct db_stmt *stmt = use_for(store, Q_LAYER_UNMARK, name);

	db_bind_int(stmt, 2, store_clock_ms(store));
	return db_run(stmt, "note the use of a layer", err);
}

static int set_bytes(
	struct store *store, const char *name, int64_t bytes, unsigned python, struct err *err)
{
	struct db_stmt *stmt = use_for(store, Q_LAYER_SET_BYTES, name);

	db_bind_int(stmt, 2, bytes);
	db_bind_int(stmt, 3, python);
	return db_run(stmt, "note what a layer takes", err);
}

static struct db_stmt *use_note(
	struct store *store, enum query query, const struct owner *owner, const char *name)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_text(stmt, 3, name);
	db_bind_int(stmt, 4, store_clock_ms(store));
	return stmt;
}

int store_layer_check_stack(struct store *store, const json_t *image, struct err *err)
{
	const char *stack = json_string_value(json_object_get(image, "stack"));
	struct row row = {0};
	int r;

	if (!stack)
		return 0;
	r = find(store, stack, &row, err);
	if (r < 0 || (r > 0 && !row.is_gone))
		return r < 0 ? r : 0;
	return err_explain(err, ERR_CONFLICT, STORE_IMAGE_MISSING,
		"try again; the image is fetched anew then",
		"the files of image %.12s were removed, since nothing used them", stack);
}

uint64_t store_layer_bytes(struct store *store, const json_t *image)
{
	const size_t prefix = strlen("sha256:");
	uint64_t bytes = 0;
	const json_t *layer;
	size_t i;

	json_array_foreach(json_object_get(image, "layers"), i, layer)
	{
		struct row row = {0};
		struct err ignored;

		if (json_string_length(layer) == prefix + STORE_LAYER_NAME_LEN &&
			find(store, json_string_value(layer) + prefix, &row, &ignored) > 0 &&
			row.bytes > 0)
			bytes += (uint64_t)row.bytes;
	}
	return bytes;
}

/* Copies the rows of a list. */
static int read_list(struct store *store, struct db_stmt *stmt, struct layer_file files[],
	size_t max, struct err *err)
{
	size_t count = 0;
	int code;

	while (count < max && (code = db_step(stmt)) == DB_ROW) {
		struct layer_file *file = &files[count++];

		store_read_text(stmt, 0, file->name, sizeof(file->name));
		file->is_stack = db_column_int(stmt, 1) != 0;
		file->bytes = db_column_int(stmt, 2);
		file->used_at_ms = db_column_int(stmt, 3);
	}
	db_reset(stmt);
	if (count < max && code != DB_DONE)
		return store_fail(store, "list layers", err);
	return (int)count;
}

/* --- for everybody --- */

int store_layer_begin(struct store *store, const char *name, bool is_stack, struct err *err)
{
	struct row ignored;
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, name, &ignored, err);
	if (r >= 0)
		r = r > 0 ? unmark(store, name, err) : put(store, name, is_stack, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_note(struct store *store, const struct owner *owner, const char *name,
	int64_t bytes, unsigned python, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_note(store, Q_LAYER_NOTE, owner, name), "note a layer", err);
	if (r == 0 && bytes >= 0)
		r = set_bytes(store, name, bytes, python, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_python(struct store *store, const char *name, struct err *err)
{
	struct row row = {0};
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, name, &row, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? row.python : r;
}

int store_layer_has(
	struct store *store, const struct owner *owner, const char *name, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = change(store, use_note(store, Q_LAYER_HAS, owner, name), "look for a layer", err);
	if (r > 0) {
		r = unmark(store, name, err);
		r = r < 0 ? r : 1;
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_is_known(struct store *store, const char *name, struct err *err)
{
	struct row ignored;
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, name, &ignored, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_is_marked(struct store *store, const char *name, struct err *err)
{
	struct row row = {0};
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, name, &row, err);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : r > 0 && row.is_gone;
}

int store_layer_check_image(struct store *store, const json_t *image, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_layer_check_stack(store, image, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int run_at(
	struct store *store, enum query query, int64_t at_ms, const char *what, struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_int(stmt, 1, at_ms);
	return db_run(stmt, what, err);
}

/* With the lock held. */
static int expire(struct store *store, const struct layer_expiry *expiry, struct err *err)
{
	int64_t now_ms = store_clock_ms(store);
	const struct {
		enum query query;
		int64_t at_ms;
		const char *what;
	} steps[] = {
		{Q_TEMPLATE_EXPIRE, expiry->before_ms, "forget images"},
		{Q_BUILD_CACHE_EXPIRE, expiry->cache_before_ms, "forget built layers"},
		{Q_DEPENDENCY_FILE_EXPIRE, expiry->before_ms, "forget files that name packages"},
		{Q_LAYER_TOUCH_USED, now_ms, "note the use of layers"},
		{Q_LAYER_TOUCH_NOTES, now_ms, "note the use of layers"},
		{Q_LAYER_EXPIRE_NOTES, expiry->before_ms, "forget layers"},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < array_len(steps); i++)
		r = run_at(store, steps[i].query, steps[i].at_ms, steps[i].what, err);
	return r;
}

int store_layer_expire(struct store *store, const struct layer_expiry *expiry, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = expire(store, expiry, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* With the lock held. */
static int list_unused(struct store *store, int64_t before_ms, bool stacks, const char *after,
	struct layer_file files[], size_t max, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_LAYER_UNUSED);

	db_bind_int(stmt, 1, before_ms);
	db_bind_int(stmt, 2, stacks);
	db_bind_text(stmt, 3, after);
	db_bind_int(stmt, 4, (int64_t)max);
	return read_list(store, stmt, files, max, err);
}

int store_layer_list_unused(struct store *store, const struct layer_expiry *expiry, bool is_ahead,
	bool stacks, const char *after, struct layer_file files[], size_t max, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&store->lock);
	if (is_ahead) {
		r = db_begin(store->db, err);
		if (r == 0)
			r = expire(store, expiry, err);
	}
	if (r == 0)
		r = list_unused(store, expiry->before_ms, stacks, after, files, max, err);
	if (is_ahead)
		db_rollback(store->db);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int list_after(struct store *store, enum query query, const char *after,
	struct layer_file files[], size_t max, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, query, after);
	db_bind_int(stmt, 2, (int64_t)max);
	r = read_list(store, stmt, files, max, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_list_marked(struct store *store, const char *after, struct layer_file files[],
	size_t max, struct err *err)
{
	return list_after(store, Q_LAYER_MARKED, after, files, max, err);
}

int store_layer_list_unmeasured(struct store *store, const char *after, struct layer_file files[],
	size_t max, struct err *err)
{
	return list_after(store, Q_LAYER_UNMEASURED, after, files, max, err);
}

int store_layer_mark(struct store *store, const char *name, int64_t before_ms, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, Q_LAYER_MARK, name);
	db_bind_int(stmt, 2, before_ms);
	r = change(store, stmt, "mark a layer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_unmark(struct store *store, const char *name, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = unmark(store, name, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* The row goes last: until then it is known that the owners' notes mean nothing. */
int store_layer_forget(struct store *store, const char *name, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_for(store, Q_LAYER_DELETE_NOTES, name), "forget a layer", err);
	if (r == 0)
		r = db_run(use_for(store, Q_LAYER_DELETE, name), "forget a layer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_set_bytes(struct store *store, const char *name, int64_t bytes, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = set_bytes(store, name, bytes, 0, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_layer_totals(struct store *store, struct layer_totals *ret_totals, struct err *err)
{
	struct db_stmt *stmt;
	int code;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LAYER_TOTALS);
	code = db_step(stmt);
	if (code == DB_ROW)
		*ret_totals = (struct layer_totals){.layers = (uint64_t)db_column_int(stmt, 0),
			.bytes = (uint64_t)db_column_int(stmt, 1),
			.used_layers = (uint64_t)db_column_int(stmt, 2),
			.used_bytes = (uint64_t)db_column_int(stmt, 3)};
	db_reset(stmt);
	code = code == DB_ROW ? 0 : store_fail(store, "count layers", err);
	pthread_mutex_unlock(&store->lock);
	return code;
}
