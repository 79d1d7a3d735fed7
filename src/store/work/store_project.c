/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_project.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NUMBERS_MAX 1000 /* of files of one name */

static void read_record(struct db_stmt *stmt, struct project_record *record)
{
	*record = (struct project_record){.labels = store_read_json(stmt, 4),
		.defaults = store_read_json(stmt, 5),
		.created_at_ms = db_column_int(stmt, 6),
		.updated_at_ms = db_column_int(stmt, 7),
		.files = (uint64_t)db_column_int(stmt, 8),
		.bytes = (uint64_t)db_column_int(stmt, 9)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 2, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 3, record->name, sizeof(record->name));
}

static void read_file(struct db_stmt *stmt, struct project_file *file)
{
	*file = (struct project_file){.bytes = (uint64_t)db_column_int(stmt, 2),
		.is_executable = db_column_int(stmt, 5) != 0,
		.created_at_ms = db_column_int(stmt, 7),
		.is_synced = db_column_int(stmt, 8) != 0};
	store_read_text(stmt, 0, file->id, sizeof(file->id));
	store_read_text(stmt, 1, file->path, sizeof(file->path));
	store_read_text(stmt, 3, file->sha256, sizeof(file->sha256));
	store_read_text(stmt, 4, file->type, sizeof(file->type));
	store_read_text(stmt, 6, file->uploader, sizeof(file->uploader));
}

/* --- with the lock held --- */

/* Whether a statement that is bound gives a row: 1 or 0, or -errno. */
static int has_row(struct store *store, struct db_stmt *stmt, struct err *err)
{
	int code = db_step(stmt);

	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "look at projects", err);
	return code == DB_ROW;
}

static int name_taken(const char *name, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, "project_exists", "use it, or choose another name",
		"there is a project %s already", name);
}

static int insert_row(struct store *store, const struct project_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_INSERT);
	int code;

	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_text(stmt, 4, record->name);
	store_bind_json(stmt, 5, record->labels);
	store_bind_json(stmt, 6, record->defaults);
	db_bind_int(stmt, 7, record->created_at_ms);
	db_bind_int(stmt, 8, record->updated_at_ms);
	code = db_step(stmt);
	db_reset(stmt);
	if (code == DB_DONE)
		return 0;
	return db_conflict(store->db) != DB_CONFLICT_NONE ? name_taken(record->name, err)
							  : store_fail(store, "add a project", err);
}

static int check_count(struct store *store, const struct owner *owner, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_COUNT);
	int64_t count = 0;
	int code;

	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		count = db_column_int(stmt, 0);
	db_reset(stmt);
	if (code != DB_ROW)
		return store_fail(store, "count projects", err);
	if (count <= STORE_PROJECTS_MAX)
		return 0;
	return err_explain(err, ERR_RATE, "too_many_projects", "delete some that are not needed",
		"there are %d projects already", STORE_PROJECTS_MAX);
}

static int get_row(struct store *store, const struct owner *owner, const char *id_or_name,
	struct project_record *ret_record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_GET);
	int code;

	db_bind_text(stmt, 1, id_or_name);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_record(stmt, ret_record);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read a project", err);
	return code == DB_ROW ? 0 : project_not_found(id_or_name, err);
}

/* 1 if a sandbox has the project, else 0. */
static int is_used(struct store *store, const struct project_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_IS_USED);

	db_bind_text(stmt, 1, record->name);
	store_bind_owner(stmt, &record->owner);
	return has_row(store, stmt, err);
}

static int check_unused(struct store *store, const struct project_record *record, struct err *err)
{
	int r = is_used(store, record, err);

	if (r <= 0)
		return r;
	return err_explain(err, ERR_CONFLICT, "project_in_use", "delete its sandboxes first",
		"sandboxes have the project %s", record->name);
}

/* Ends a transaction: commits it if all went well. */
static int end(struct store *store, int r, struct err *err)
{
	if (r >= 0) {
		int committed = db_commit(store->db, err);

		r = committed < 0 ? committed : r;
	}
	if (r < 0)
		db_rollback(store->db);
	return r;
}

/* --- projects --- */

int store_project_insert(struct store *store, const struct project_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = insert_row(store, record, err);
		if (r == 0)
			r = check_count(store, &record->owner, err);
		r = end(store, r, err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_project_get(struct store *store, const struct owner *owner, const char *id_or_name,
	struct project_record *ret_record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = get_row(store, owner, id_or_name, ret_record, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int update_row(struct store *store, const struct project_record *record, struct err *err)
{
	struct project_record before;
	struct db_stmt *stmt;
	int code, r = get_row(store, &record->owner, record->id, &before, err);

	if (r < 0)
		return r;
	if (strcmp(before.name, record->name) != 0)
		r = check_unused(store, &before, err);
	project_record_fini(&before);
	if (r < 0)
		return r;
	stmt = store_use(store, Q_PROJECT_UPDATE);
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->name);
	store_bind_json(stmt, 3, record->labels);
	store_bind_json(stmt, 4, record->defaults);
	db_bind_int(stmt, 5, record->updated_at_ms);
	code = db_step(stmt);
	db_reset(stmt);
	if (code == DB_DONE)
		return 0;
	return db_conflict(store->db) != DB_CONFLICT_NONE
		       ? name_taken(record->name, err)
		       : store_fail(store, "change a project", err);
}

int store_project_update(struct store *store, const struct project_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0)
		r = end(store, update_row(store, record, err), err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int delete_rows(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	struct project_record record;
	struct db_stmt *stmt;
	int r = get_row(store, owner, id, &record, err);

	if (r < 0)
		return r;
	r = check_unused(store, &record, err);
	if (r == 0) {
		stmt = store_use(store, Q_PROJECT_DELETE_FILES);
		db_bind_text(stmt, 1, record.id);
		r = db_run(stmt, "delete the files of a project", err);
	}
	if (r == 0) {
		stmt = store_use(store, Q_PROJECT_DELETE);
		db_bind_text(stmt, 1, record.id);
		r = db_run(stmt, "delete a project", err);
	}
	project_record_fini(&record);
	return r;
}

int store_project_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0)
		r = end(store, delete_rows(store, owner, id, err), err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int read_page(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, struct project_record *page, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROJECT_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, limit);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_record(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list projects", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		project_record_fini(&page[i]);
	return r;
}

int store_project_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct project_record *record, void *arg), void *arg,
	struct err *err)
{
	auto_free struct project_record *page = mem_new(STORE_PAGE * sizeof(*page));
	char last[ID_LEN + 1];
	unsigned left = limit, asked;
	bool wants_more = true;
	int count;

	snprintf(last, sizeof(last), "%s", after);
	do {
		asked = store_page(left);
		count = read_page(store, owner, last, asked, page, err);
		for (int i = 0; i < count; i++) {
			wants_more = wants_more && each(&page[i], arg);
			memcpy(last, page[i].id, sizeof(last));
			project_record_fini(&page[i]);
		}
		left -= count > 0 ? (unsigned)count : 0;
	} while (wants_more && count > 0 && (unsigned)count == asked && left > 0);
	return count < 0 ? count : 0;
}

/* --- files, with the lock held --- */

/* Counts files and bytes that come or go; at the same time the check that the project is there. */
static int count_change(
	struct store *store, const char *project, int64_t files, int64_t bytes, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_COUNT_CHANGE);
	int r;

	db_bind_text(stmt, 1, project);
	db_bind_int(stmt, 2, files);
	db_bind_int(stmt, 3, bytes);
	db_bind_int(stmt, 4, store_clock_ms(store));
	r = db_run(stmt, "count the files of a project", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = project_not_found(project, err);
	return r;
}

/* 1 and the file of a path, or 0. */
static int find_path(struct store *store, const char *project, const char *path,
	struct project_file *ret_file, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_FILE_FIND);
	int code;

	db_bind_text(stmt, 1, project);
	db_bind_text(stmt, 2, path);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_file(stmt, ret_file);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "look for a file of a project", err);
	return code == DB_ROW;
}

/* A file cannot be a directory too. */
static int check_place(struct store *store, const char *project, const char *path, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_FILE_HAS_BELOW);
	struct project_file above;
	int r;

	db_bind_text(stmt, 1, project);
	db_bind_text(stmt, 2, path);
	r = has_row(store, stmt, err);
	if (r > 0)
		return err_explain(err, ERR_CONFLICT, "path_is_directory", "choose another path",
			"%.200s is a directory of the project", path);
	for (const char *slash = strchr(path, '/'); r == 0 && slash;
		slash = strchr(slash + 1, '/')) {
		char part[PROJECT_PATH_MAX];

		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		r = find_path(store, project, part, &above, err);
		if (r > 0)
			return err_explain(err, ERR_CONFLICT, "path_through_file",
				"choose another path", "%.200s is a file of the project", part);
	}
	return r;
}

static int write_file(struct store *store, enum query query, const char *project,
	const struct project_file *file, struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, file->id);
	db_bind_text(stmt, 2, project);
	db_bind_text(stmt, 3, file->path);
	db_bind_int(stmt, 4, (int64_t)file->bytes);
	db_bind_text(stmt, 5, file->sha256);
	db_bind_text(stmt, 6, file->type);
	db_bind_int(stmt, 7, file->is_executable);
	db_bind_text(stmt, 8, file->uploader);
	db_bind_int(stmt, 9, file->created_at_ms);
	db_bind_int(stmt, 10, file->is_synced);
	return db_run(stmt, "write a file of a project", err);
}

/* Gives the file the first path with a number that is free. */
static int number_path(
	struct store *store, const char *project, struct project_file *file, struct err *err)
{
	struct project_file taken;
	char path[PROJECT_PATH_MAX];

	for (unsigned n = 1; n <= NUMBERS_MAX; n++) {
		struct db_stmt *stmt;
		int r;

		if (!project_path_number(file->path, n, path))
			break;
		r = find_path(store, project, path, &taken, err);
		if (r < 0)
			return r;
		stmt = store_use(store, Q_PROJECT_FILE_HAS_BELOW);
		db_bind_text(stmt, 1, project);
		db_bind_text(stmt, 2, path);
		if (r == 0)
			r = has_row(store, stmt, err);
		if (r < 0)
			return r;
		if (r == 0) {
			memcpy(file->path, path, sizeof(path));
			return 0;
		}
	}
	return err_explain(err, ERR_CONFLICT, "path_taken", "choose another name",
		"the project has %.200s already, and the numbers after it", file->path);
}

/* How many files and bytes an upload adds. */
struct growth {
	int64_t files, bytes;
};

static int add_file(struct store *store, const struct store_project_upload *upload,
	struct project_file *file, struct growth *growth, char ret_replaced[PROJECT_SHA256_LEN + 1],
	struct err *err)
{
	struct project_file before;
	int r = find_path(store, upload->project, file->path, &before, err);

	if (r > 0 && upload->numbers) {
		r = number_path(store, upload->project, file, err);
	} else if (r > 0) {
		memcpy(file->id, before.id, sizeof(file->id));
		growth->bytes += (int64_t)file->bytes - (int64_t)before.bytes;
		r = write_file(store, Q_PROJECT_FILE_UPDATE, upload->project, file, err);
		if (r == 0 && strcmp(before.sha256, file->sha256) != 0)
			memcpy(ret_replaced, before.sha256, sizeof(before.sha256));
		return r;
	}
	if (r == 0)
		r = check_place(store, upload->project, file->path, err);
	if (r < 0)
		return r;
	growth->files++;
	growth->bytes += (int64_t)file->bytes;
	return write_file(store, Q_PROJECT_FILE_INSERT, upload->project, file, err);
}

/* Finds synced files that an upload has not: {path: id} and their hashes into upload->removed. */
static int find_stale(struct store *store, const struct store_project_upload *upload, json_t *ids,
	struct growth *growth, struct err *err)
{
	json_auto_t *paths = json_object();
	struct db_stmt *stmt = store_use(store, Q_PROJECT_FILE_SYNCED);
	char path[PROJECT_PATH_MAX], sha256[PROJECT_SHA256_LEN + 1], id[ID_LEN + 1];
	int code;

	for (size_t i = 0; i < upload->count; i++)
		json_object_set_new(paths, upload->files[i]->path, json_true());
	db_bind_text(stmt, 1, upload->project);
	while ((code = db_step(stmt)) == DB_ROW) {
		store_read_text(stmt, 0, path, sizeof(path));
		store_read_text(stmt, 1, sha256, sizeof(sha256));
		store_read_text(stmt, 3, id, sizeof(id));
		if (json_object_get(paths, path))
			continue;
		growth->files--;
		growth->bytes -= db_column_int(stmt, 2);
		json_object_set_new(upload->removed, path, json_string(sha256));
		json_object_set_new(ids, path, json_string(id));
	}
	db_reset(stmt);
	return code == DB_DONE ? 0 : store_fail(store, "list the files of a project", err);
}

static int remove_stale(struct store *store, const struct store_project_upload *upload,
	struct growth *growth, struct err *err)
{
	json_auto_t *ids = json_object();
	const char *path;
	json_t *id;
	int r = find_stale(store, upload, ids, growth, err);

	json_object_foreach(ids, path, id)
	{
		struct db_stmt *stmt = store_use(store, Q_PROJECT_FILE_DELETE);

		db_bind_text(stmt, 1, json_string_value(id));
		if (r == 0)
			r = db_run(stmt, "delete a file of a project", err);
	}
	return r;
}

static int check_growth(struct store *store, const struct store_project_upload *upload,
	const struct growth *growth, struct err *err)
{
	const struct quota_amounts wanted = {
		.of = {[QUOTA_PROJECTS] = growth->bytes > 0 ? (uint64_t)growth->bytes : 0}};
	struct project_record record;
	int r = count_change(store, upload->project, growth->files, growth->bytes, err);

	if (r == 0)
		r = get_row(store, upload->owner, upload->project, &record, err);
	if (r < 0)
		return r;
	project_record_fini(&record);
	if (growth->files > 0 && record.files > STORE_PROJECT_FILES_MAX)
		return err_explain(err, ERR_RATE, "too_many_files",
			"delete some, or put them into an archive",
			"a project has at most %d files", STORE_PROJECT_FILES_MAX);
	return store_quota_check(store, upload->owner, &wanted, err);
}

/* --- files --- */

int store_project_add(struct store *store, const struct store_project_upload *upload,
	void (*gone)(void *arg, const char *sha256), void *arg, struct err *err)
{
	auto_free char(*replaced)[PROJECT_SHA256_LEN + 1] =
		mem_new((upload->count + 1) * sizeof(*replaced));
	struct growth growth = {0};
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		/* First, since what was a directory may be a file now. */
		if (upload->removed)
			r = remove_stale(store, upload, &growth, err);
		for (size_t i = 0; r == 0 && i < upload->count; i++)
			r = add_file(store, upload, upload->files[i], &growth, replaced[i], err);
		if (r == 0)
			r = check_growth(store, upload, &growth, err);
		r = end(store, r, err);
	}
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; r == 0 && i < upload->count; i++) {
		if (replaced[i][0])
			gone(arg, replaced[i]);
	}
	return r;
}

static int get_file(struct store *store, const char *project, const char *id_or_path,
	struct project_file *ret_file, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROJECT_FILE_GET);
	int code;

	db_bind_text(stmt, 1, project);
	db_bind_text(stmt, 2, id_or_path);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_file(stmt, ret_file);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read a file of a project", err);
	return code == DB_ROW ? 0 : project_file_not_found(id_or_path, err);
}

int store_project_file_get(struct store *store, const char *project, const char *id_or_path,
	struct project_file *ret_file, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = get_file(store, project, id_or_path, ret_file, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int read_files(struct store *store, const char *project, const char *after, unsigned limit,
	struct project_file *page, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROJECT_FILE_LIST);
	db_bind_text(stmt, 1, project);
	db_bind_text(stmt, 2, after);
	db_bind_int(stmt, 3, limit);
	while ((code = db_step(stmt)) == DB_ROW)
		read_file(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list the files of a project", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_project_file_list(struct store *store, const char *project, const char *after,
	unsigned limit, bool (*each)(const struct project_file *file, void *arg), void *arg,
	struct err *err)
{
	auto_free struct project_file *page = mem_new(STORE_PAGE * sizeof(*page));
	char last[PROJECT_PATH_MAX];
	unsigned left = limit, asked;
	bool wants_more = true;
	int count;

	snprintf(last, sizeof(last), "%s", after);
	do {
		asked = store_page(left);
		count = read_files(store, project, last, asked, page, err);
		for (int i = 0; i < count; i++) {
			wants_more = wants_more && each(&page[i], arg);
			memcpy(last, page[i].path, sizeof(last));
		}
		left -= count > 0 ? (unsigned)count : 0;
	} while (wants_more && count > 0 && (unsigned)count == asked && left > 0);
	return count < 0 ? count : 0;
}

static int delete_file(struct store *store, const char *project, const char *id, struct err *err)
{
	struct project_file file;
	struct db_stmt *stmt;
	int r = get_file(store, project, id, &file, err);

	if (r == 0)
		r = count_change(store, project, -1, -(int64_t)file.bytes, err);
	if (r < 0)
		return r;
	stmt = store_use(store, Q_PROJECT_FILE_DELETE);
	db_bind_text(stmt, 1, file.id);
	return db_run(stmt, "delete a file of a project", err);
}

int store_project_file_delete(
	struct store *store, const char *project, const char *id, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0)
		r = end(store, delete_file(store, project, id, err), err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int move_file(
	struct store *store, const char *project, const char *id, const char *path, struct err *err)
{
	struct project_file file, taken;
	int r = get_file(store, project, id, &file, err);

	if (r == 0)
		r = find_path(store, project, path, &taken, err);
	if (r > 0)
		return err_explain(err, ERR_CONFLICT, "path_taken",
			"delete it first, or choose another path", "the project has %.200s already",
			path);
	if (r == 0)
		r = check_place(store, project, path, err);
	if (r < 0)
		return r;
	memcpy(file.path, path, strlen(path) + 1);
	/* The directory that it came from has no such file. */
	file.is_synced = false;
	r = count_change(store, project, 0, 0, err);
	return r < 0 ? r : write_file(store, Q_PROJECT_FILE_UPDATE, project, &file, err);
}

int store_project_file_move(
	struct store *store, const char *project, const char *id, const char *path, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0)
		r = end(store, move_file(store, project, id, path, err), err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_project_uses(
	struct store *store, const char *project, const char *sha256, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROJECT_USES);
	db_bind_text(stmt, 1, project);
	db_bind_text(stmt, 2, sha256);
	r = has_row(store, stmt, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
