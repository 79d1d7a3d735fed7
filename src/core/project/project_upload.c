/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/project_upload.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/format.h"
#include "core/project/file_type.h"
#include "core/project/project_tree.h"
#include "store/access/store_quota.h"
#include "store/store_clock.h"
#include "store/work/store_project.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTA_STEP (16u << 20) /* how often the quota is looked at while bytes come */
#define PATHS_MAX  (4u << 20)  /* bytes of the paths of one upload */

struct upload_file {
	struct project_file file;
	struct blob_part part; /* its name is "" for one that has the content of another */
};

struct project_upload {
	struct projects *projects;
	struct project_record record; /* a copy, without its JSON */
	struct owner owner;
	bool numbers;
	bool is_synced;
	json_t *removed; /* by paths, with their hashes; NULL: nothing is to be removed */
	struct project_tree tree;
	struct upload_file *files[PROJECT_UPLOAD_FILES];
	size_t count;
	size_t path_bytes;
	uint64_t bytes;		    /* of all files */
	uint64_t unasked;	    /* of them, since the quota was looked at */
	struct blob_writer *writer; /* of the file that comes now */
	struct upload_file *now;
	size_t head_len;
	uint8_t head[FILE_TYPE_HEAD];
	char (*gone)[PROJECT_SHA256_LEN + 1]; /* content that was replaced */
	size_t gone_count;
};

/* Whether the project is still there. The lock is held, so it stays. */
static int check_project(
	struct projects *projects, const struct project_record *record, struct err *err)
{
	struct project_record now;
	int r = store_project_get(
		projects_config_of(projects)->store, &record->owner, record->id, &now, err);

	if (r == 0)
		project_record_fini(&now);
	return r;
}

int project_upload_open(struct projects *projects, const struct project_record *record,
	const struct caller *caller, bool numbers, struct project_upload **ret_upload,
	struct err *err)
{
	const struct projects_config *config = projects_config_of(projects);
	struct project_upload *upload = mem_new(sizeof(*upload));
	int r;

	upload->projects = projects;
	upload->record = *record;
	upload->record.labels = upload->record.defaults = NULL;
	upload->owner = caller->owner;
	upload->numbers = numbers;
	projects_lock(projects, record->id);
	r = check_project(projects, record, err);
	if (r == 0)
		r = project_tree_open(
			config->dir_fd, record->id, config->disk_reserve, &upload->tree, err);
	projects_unlock(projects, record->id);
	if (r < 0) {
		free(upload);
		return r;
	}
	*ret_upload = upload;
	return 0;
}

void project_upload_sync(struct project_upload *upload, bool whole)
{
	upload->is_synced = true;
	if (whole)
		upload->removed = json_object();
}

static int invalid_path(const char *path, const char *problem, struct err *err)
{
	char shown[128];
	size_t len = 0;

	for (; path[len] && len < sizeof(shown) - 1; len++)
		shown[len] = (unsigned char)path[len] < ' ' ? '?' : path[len];
	len -= format_unfinished(shown, len);
	shown[len] = '\0';
	return err_explain(err, ERR_INVALID, "invalid_path", NULL, "a path %s: %s", problem, shown);
}

/* Room for one more, with a path that is safe. */
static int add_entry(struct project_upload *upload, const char *path, bool is_executable,
	struct upload_file **ret_entry, struct err *err)
{
	const char *problem = project_path_problem(path);
	struct upload_file *entry;

	if (problem)
		return invalid_path(path, problem, err);
	if (upload->count >= PROJECT_UPLOAD_FILES || upload->path_bytes + strlen(path) > PATHS_MAX)
		return err_explain(err, ERR_TOO_LARGE, "too_many_files",
			"upload them in several requests",
			"an upload has at most %d files, and 4 MiB of paths", PROJECT_UPLOAD_FILES);
	entry = mem_new(sizeof(*entry));
	id_new(clock_wall_ms(), entry->file.id);
	snprintf(entry->file.path, sizeof(entry->file.path), "%s", path);
	snprintf(entry->file.uploader, sizeof(entry->file.uploader), "%s", upload->owner.user);
	entry->file.is_executable = is_executable;
	entry->file.is_synced = upload->is_synced;
	entry->file.created_at_ms = store_clock_ms(projects_config_of(upload->projects)->store);
	upload->path_bytes += strlen(path);
	*ret_entry = upload->files[upload->count++] = entry;
	return 0;
}

int project_upload_begin(
	struct project_upload *upload, const char *path, bool is_executable, struct err *err)
{
	int r = add_entry(upload, path, is_executable, &upload->now, err);

	if (r < 0)
		return r;
	upload->head_len = 0;
	return blob_writer_open(upload->tree.blobs, NULL,
		projects_config_of(upload->projects)->file_max, &upload->writer, err);
}

/* What the owner has now and what came so far must fit together; the commit has the last word. */
static int check_quota(struct project_upload *upload, size_t len, struct err *err)
{
	upload->bytes += len;
	upload->unasked += len;
	if (upload->unasked < QUOTA_STEP)
		return 0;
	upload->unasked = 0;
	return store_quota_check_more(projects_config_of(upload->projects)->store, &upload->owner,
		QUOTA_PROJECTS, upload->bytes, err);
}

int project_upload_write(
	struct project_upload *upload, const void *data, size_t len, struct err *err)
{
	size_t room = FILE_TYPE_HEAD - upload->head_len;
	char max[FORMAT_SIZE_LEN];
	int r = blob_writer_add(upload->writer, data, len, err);

	if (r < 0 && err->kind == ERR_TOO_LARGE) {
		format_size(projects_config_of(upload->projects)->file_max, max);
		return err_explain(err, ERR_TOO_LARGE, "file_too_large",
			"make it smaller, or ask the operator for a higher --project-file-max",
			"%.160s has more than the %s that a file may have", upload->now->file.path,
			max);
	}
	if (r < 0)
		return r;
	if (room > 0) {
		memcpy(upload->head + upload->head_len, data, len < room ? len : room);
		upload->head_len += len < room ? len : room;
	}
	return check_quota(upload, len, err);
}

int project_upload_end(struct project_upload *upload, struct err *err)
{
	const char *allowed = projects_config_of(upload->projects)->types;
	struct upload_file *entry = upload->now;
	int r;

	entry->file.bytes = blob_writer_length(upload->writer);
	file_types_find(projects_file_types(upload->projects), upload->head, upload->head_len,
		entry->file.path, entry->file.type);
	if (!file_type_is_listed(allowed, entry->file.type))
		return err_explain(err, ERR_MEDIA_TYPE, "file_type_refused",
			"the operator allows types with --project-types",
			"%.120s is %s, and of files only %.100s are taken", entry->file.path,
			entry->file.type, allowed);
	r = blob_writer_set_aside(upload->writer, &entry->part, err);
	if (r < 0)
		return r;
	snprintf(entry->file.sha256, sizeof(entry->file.sha256), "%s",
		digest_hex(&entry->part.digest));
	blob_writer_close(upload->writer);
	upload->writer = NULL;
	upload->now = NULL;
	return 0;
}

int project_upload_copy(
	struct project_upload *upload, const char *path, const char *from, struct err *err)
{
	const struct upload_file *original = NULL;
	struct upload_file *entry;
	int r;

	for (size_t i = upload->count; !original && i-- > 0;) {
		if (strcmp(upload->files[i]->file.path, from) == 0)
			original = upload->files[i];
	}
	if (!original)
		return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"%.140s is a link to what is not in the archive", path);
	r = add_entry(upload, path, original->file.is_executable, &entry, err);
	if (r < 0)
		return r;
	entry->file.bytes = original->file.bytes;
	memcpy(entry->file.sha256, original->file.sha256, sizeof(entry->file.sha256));
	memcpy(entry->file.type, original->file.type, sizeof(entry->file.type));
	entry->part.digest = project_tree_digest(entry->file.sha256);
	return check_quota(upload, entry->file.bytes, err);
}

static void note_gone(void *arg, const char *sha256)
{
	struct project_upload *upload = arg;

	memcpy(upload->gone[upload->gone_count++], sha256, PROJECT_SHA256_LEN + 1);
}

static int name_content(struct project_upload *upload, struct err *err)
{
	auto_free struct blob_part **parts =
		mem_new((upload->count + 1) * sizeof(struct blob_part *));

	for (size_t i = 0; i < upload->count; i++)
		parts[i] = &upload->files[i]->part;
	return blob_store_name_parts(upload->tree.blobs, parts, upload->count, err);
}

static int write_rows(struct project_upload *upload, struct err *err)
{
	auto_free struct project_file **files =
		mem_new((upload->count + 1) * sizeof(struct project_file *));
	struct store_project_upload rows = {.project = upload->record.id,
		.owner = &upload->record.owner,
		.files = files,
		.count = upload->count,
		.numbers = upload->numbers,
		.removed = upload->removed};

	for (size_t i = 0; i < upload->count; i++)
		files[i] = &upload->files[i]->file;
	upload->gone = mem_new((upload->count + 1) * sizeof(*upload->gone));
	return store_project_add(
		projects_config_of(upload->projects)->store, &rows, note_gone, upload, err);
}

/* Of two files of one path in an upload the last counts. */
static int link_files(struct project_upload *upload, struct err *err)
{
	const char *path;
	json_t *sha256;
	int r = 0;

	json_object_foreach(upload->removed, path, sha256) project_tree_drop(&upload->tree, path);
	for (size_t i = 0; r == 0 && i < upload->count; i++)
		r = project_tree_put(&upload->tree, &upload->files[i]->file, err);
	return r;
}

/* Content that the rows did not take, or do not have any more. */
static void drop_content(struct project_upload *upload, bool is_committed)
{
	struct projects *projects = upload->projects;
	const char *path;
	json_t *sha256;

	for (size_t i = 0; !is_committed && i < upload->count; i++) {
		if (upload->files[i]->file.sha256[0])
			projects_drop_content(projects, upload->record.id, &upload->tree,
				upload->files[i]->file.sha256);
	}
	if (!is_committed)
		json_object_clear(upload->removed);
	json_object_foreach(upload->removed, path, sha256) projects_drop_content(
		projects, upload->record.id, &upload->tree, json_string_value(sha256));
	for (size_t i = 0; i < upload->gone_count; i++)
		projects_drop_content(projects, upload->record.id, &upload->tree, upload->gone[i]);
}

int project_upload_commit(struct project_upload *upload, struct err *err)
{
	bool is_committed = false;
	int r;

	if (upload->removed && upload->count == 0)
		return err_explain(err, ERR_INVALID, "no_files",
			"name another directory, or remove the project",
			"the directory has no files");
	projects_lock(upload->projects, upload->record.id);
	r = check_project(upload->projects, &upload->record, err);
	if (r == 0)
		r = name_content(upload, err);
	fail_point("project.content_written");
	if (r == 0)
		r = write_rows(upload, err);
	is_committed = r == 0;
	fail_point("project.rows_written");
	if (r == 0)
		r = link_files(upload, err);
	fail_point("project.linked");
	drop_content(upload, is_committed);
	projects_unlock(upload->projects, upload->record.id);
	if (is_committed)
		projects_publish(upload->projects, &upload->record);
	return r;
}

size_t project_upload_count(const struct project_upload *upload)
{
	return upload->count;
}

const json_t *project_upload_removed(const struct project_upload *upload)
{
	return upload->removed;
}

const struct project_file *project_upload_file(const struct project_upload *upload, size_t i)
{
	return &upload->files[i]->file;
}

void project_upload_close(struct project_upload *upload)
{
	if (!upload)
		return;
	blob_writer_close(upload->writer);
	for (size_t i = 0; i < upload->count; i++) {
		blob_store_drop_part(upload->tree.blobs, &upload->files[i]->part);
		free(upload->files[i]);
	}
	free(upload->gone);
	json_decref(upload->removed);
	project_tree_close(&upload->tree);
	free(upload);
}

void project_upload_closep(struct project_upload **upload)
{
	project_upload_close(*upload);
}
