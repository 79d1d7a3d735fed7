/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of projects. Bodies are read on the worker's thread, which passes them on to disk: what comes is never in
 * memory as a whole. Content goes out from its file by a thread of its own (api/file_sender.h).
 */
#include "api/file_sender.h"
#include "api/files/file_entry.h"
#include "api/files/range.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/project/project_body.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/share_pool.h"
#include "core/engine/disk_reserve.h"
#include "core/project/project_archive.h"
#include "core/project/project_upload.h"
#include "http/multipart.h"
#include "model/access/owner.h"
#include "store/work/store_project.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_LIMIT_MAX	   10000
#define LIST_LIMIT_DEFAULT 1000
#define READ_SIZE	   (128u << 10)
#define REMOVED_SHOWN	   100 /* paths of files that an import removed */

/* --- the common beginning --- */

/* The project that the path names; the caller ends the record. */
static int find_project(
	struct request *req, struct api *api, struct project_record *ret_record, struct err *err)
{
	struct owner owner = api_owner(req);
	int r = api_check_ready(api, err);

	if (r == 0)
		r = store_project_get(engine_store(api->engine), &owner,
			request_param(req, "project"), ret_record, err);
	if (r == 0)
		request_set_object(req, ret_record->id);
	return r;
}

/* And the file of it. */
static int find_file(struct request *req, struct api *api, struct project_record *ret_record,
	struct project_file *ret_file, struct err *err)
{
	int r = find_project(req, api, ret_record, err);

	if (r < 0)
		return r;
	r = store_project_file_get(engine_store(api->engine), ret_record->id,
		request_param(req, "file"), ret_file, err);
	if (r < 0)
		project_record_fini(ret_record);
	else
		request_set_detail(req, ret_file->path);
	return r;
}

/* --- in --- */

/* An upload that a request makes, if the disk has room for it. */
static int open_upload(struct request *req, struct api *api, bool numbers,
	struct project_upload **ret_upload, struct err *err)
{
	struct caller caller = api_caller(req);
	struct project_record record;
	int r = find_project(req, api, &record, err);

	if (r < 0)
		return r;
	r = disk_reserve_check(api->engine, err);
	if (r == 0)
		r = project_upload_open(api->projects, &record, &caller, numbers, ret_upload, err);
	project_record_fini(&record);
	return r;
}

static int upload_ended_early(ssize_t n, struct err *err)
{
	if (n == -EAGAIN)
		return err_set(err, ERR_RATE, "too many uploads are under way");
	return err_set(err, ERR_INVALID, "the upload ended early");
}

static int receive_file(struct request *req, struct project_upload *upload, const char *path,
	bool is_executable, struct err *err)
{
	auto_free uint8_t *data = mem_new(READ_SIZE);
	int r = project_upload_begin(upload, path, is_executable, err);
	ssize_t n = 1;

	while (r == 0 && n > 0) {
		n = request_read(req, data, READ_SIZE);
		if (n < 0)
			r = upload_ended_early(n, err);
		else if (n > 0)
			r = project_upload_write(upload, data, (size_t)n, err);
	}
	return r < 0 ? r : project_upload_end(upload, err);
}

/* Whether a body that says how large it is may be that large, before it is read. */
static int check_size(const struct request *req, struct api *api, struct err *err)
{
	uint64_t max = projects_config_of(api->projects)->file_max, size = request_body_size(req);
	char most[FORMAT_SIZE_LEN], has[FORMAT_SIZE_LEN];

	if (size == UINT64_MAX || size <= max)
		return 0;
	format_size(max, most);
	format_size(size, has);
	return err_explain(err, ERR_TOO_LARGE, "file_too_large",
		"make it smaller, or ask the operator for a higher --project-file-max",
		"the file is larger than %s: it has %s", most, has);
}

HANDLER(project_files_put)
{
	struct api *api = context;
	auto_(project_upload_closep) struct project_upload *upload = NULL;
	const char *path = request_query(req, "path");
	const struct project_file *file;
	struct project_file before;
	struct project_record record;
	bool is_executable = false, is_synced = false, is_new;
	int r;

	if (!path)
		return err_explain(
			err, ERR_INVALID, "invalid_parameter", NULL, "parameter path is missing");
	if ((r = api_query_boolean(req, "executable", &is_executable, err)) < 0 ||
		(r = api_query_boolean(req, "sync", &is_synced, err)) < 0 ||
		(r = find_project(req, api, &record, err)) < 0)
		return r;
	is_new = store_project_file_get(engine_store(api->engine), record.id, path, &before, err) <
		 0;
	project_record_fini(&record);
	if ((r = check_size(req, api, err)) < 0 ||
		(r = open_upload(req, api, false, &upload, err)) < 0)
		return r;
	if (is_synced)
		project_upload_sync(upload, false);
	if ((r = receive_file(req, upload, path, is_executable, err)) < 0 ||
		(r = project_upload_commit(upload, err)) < 0)
		return r;
	file = project_upload_file(upload, 0);
	request_answer_json(req, is_new ? 201 : 200, project_file_to_json(api, file));
	return 0;
}

/* --- a form --- */

struct form {
	struct project_upload *upload;
	bool is_file; /* the part that comes now */
};

static int begin_part(void *arg, const struct multipart_part *part, struct err *err)
{
	struct form *form = arg;
	const char *name = part->file_name;

	form->is_file = part->is_file && name[0];
	while (strncmp(name, "./", 2) == 0)
		name += 2;
	return form->is_file ? project_upload_begin(form->upload, name, false, err) : 0;
}

static int add_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct form *form = arg;

	return form->is_file ? project_upload_write(form->upload, data, len, err) : 0;
}

static int end_part(void *arg, struct err *err)
{
	struct form *form = arg;

	return form->is_file ? project_upload_end(form->upload, err) : 0;
}

static int receive_form(struct request *req, struct project_upload *upload, struct err *err)
{
	static const struct multipart_events events = {
		.begin = begin_part, .data = add_data, .end = end_part};
	auto_(multipart_closep) struct multipart *multipart = NULL;
	auto_free uint8_t *data = mem_new(READ_SIZE);
	struct form form = {.upload = upload};
	ssize_t n = 1;
	int r = multipart_open(
		request_header(req, "Content-Type"), &events, &form, &multipart, err);

	while (r == 0 && n > 0) {
		n = request_read(req, data, READ_SIZE);
		if (n < 0)
			r = upload_ended_early(n, err);
		else if (n > 0)
			r = multipart_feed(multipart, data, (size_t)n, err);
	}
	if (r == 0)
		r = multipart_finish(multipart, err);
	if (r == 0 && project_upload_count(upload) == 0)
		r = err_explain(err, ERR_INVALID, "no_files",
			"send parts with a file name: curl -F files=@a.txt",
			"the form has no files");
	return r;
}

HANDLER(project_files_post)
{
	struct api *api = context;
	auto_(project_upload_closep) struct project_upload *upload = NULL;
	json_t *files;
	int r = open_upload(req, api, true, &upload, err);

	if (r < 0 || (r = receive_form(req, upload, err)) < 0 ||
		(r = project_upload_commit(upload, err)) < 0)
		return r;
	files = json_array();
	for (size_t i = 0; i < project_upload_count(upload); i++)
		json_array_append_new(
			files, project_file_to_json(api, project_upload_file(upload, i)));
	request_answer_json(req, 201, json_pack("{s:o}", "files", files));
	return 0;
}

/* --- archives --- */

static ssize_t read_body(void *arg, void *data, size_t size)
{
	return request_read(arg, data, size);
}

/* Some of the keys of an object, which may be NULL, as an array. */
static json_t *first_keys(const json_t *object)
{
	json_t *keys = json_array(), *value;
	const char *key;

	json_object_foreach((json_t *)object, key, value)
	{
		if (json_array_size(keys) < REMOVED_SHOWN)
			json_array_append_new(keys, json_string(key));
	}
	return keys;
}

HANDLER(project_archive_put)
{
	struct api *api = context;
	auto_(project_upload_closep) struct project_upload *upload = NULL;
	const struct project_archive_source source = {.read = read_body, .arg = req};
	const char *below = request_query(req, "path"), *problem;
	uint64_t skipped, bytes = 0;
	bool is_synced = false;
	int r;

	problem = below ? project_path_problem(below) : NULL;
	if (problem)
		return err_explain(
			err, ERR_INVALID, "invalid_path", NULL, "parameter path %s", problem);
	if ((r = api_query_boolean(req, "sync", &is_synced, err)) < 0)
		return r;
	if (below && is_synced)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter sync does not go with path");
	if ((r = open_upload(req, api, false, &upload, err)) < 0)
		return r;
	if (is_synced)
		project_upload_sync(upload, true);
	if ((r = project_archive_import(upload, &source, below ? below : "", &skipped, err)) < 0 ||
		(r = project_upload_commit(upload, err)) < 0)
		return r;
	for (size_t i = 0; i < project_upload_count(upload); i++)
		bytes += project_upload_file(upload, i)->bytes;
	request_answer_json(req, 200,
		json_pack("{s:I, s:I, s:I, s:I, s:o}", "files",
			(json_int_t)project_upload_count(upload), "bytes", (json_int_t)bytes,
			"skipped", (json_int_t)skipped, "removed",
			(json_int_t)json_object_size(project_upload_removed(upload)),
			"removed_files", first_keys(project_upload_removed(upload))));
	return 0;
}

/* A place among the downloads that are under way. */
static int take_place(
	struct request *req, struct api *api, struct share **ret_share, struct err *err)
{
	struct owner owner = api_owner(req);

	if (share_pool_take(api->packers, owner_key(&owner), request_principal(req)->is_operator,
		    ret_share) == 0)
		return 0;
	return err_explain(err, ERR_RATE, "too_many_downloads",
		"wait for some of the downloads to end before you begin more",
		"as many files are being downloaded as may be");
}

/* A file without a name, which the archive is written to: its size is known then. */
static int pack(struct api *api, const struct project_record *record,
	const struct project_archive_format *format, int *ret_fd, uint64_t *ret_size,
	struct err *err)
{
	auto_fd int fd = openat(api->spool_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return err_sys(err, "make a file for the archive");
	r = project_archive_export(api->projects, record, format, fd, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "read the archive");
	*ret_size = (uint64_t)st.st_size;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int choose_format(
	struct request *req, const struct project_archive_format **ret_format, struct err *err)
{
	const char *name = request_query(req, "format");

	*ret_format = project_archive_format_find(name ? name : "tar");
	return *ret_format ? 0
			   : err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
				     "format must be tar, tar.gz or zip");
}

HANDLER(project_archive_get)
{
	struct api *api = context;
	const struct project_archive_format *format;
	char disposition[FILE_ENTRY_DISPOSITION_LEN];
	struct project_record record;
	struct share *share = NULL;
	uint64_t size;
	int fd, r = choose_format(req, &format, err);

	if (r == 0)
		r = find_project(req, api, &record, err);
	if (r < 0)
		return r;
	file_entry_disposition(record.name, format->suffix, disposition);
	r = take_place(req, api, &share, err);
	if (r == 0)
		r = pack(api, &record, format, &fd, &size, err);
	if (r == 0) {
		request_answer_header(req, "Content-Disposition", disposition);
		r = file_sender_answer(req, 200, format->media_type, fd, size, share, err);
	}
	if (r < 0)
		share_give_back(share);
	project_record_fini(&record);
	return r;
}

/* --- out --- */

struct listing {
	const struct api *api;
	struct list_page page;
	char last[PROJECT_PATH_MAX];
};

static bool list_one(const struct project_file *file, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, project_file_to_json(listing->api, file)))
		return false;
	memcpy(listing->last, file->path, sizeof(listing->last));
	return true;
}

HANDLER(project_files_list)
{
	struct api *api = context;
	struct project_record record;
	struct listing listing = {.api = api};
	char after[PROJECT_PATH_MAX];
	uint64_t limit;
	int r;

	if ((r = api_query_number(
		     req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = list_page_read_path(req, after, sizeof(after), err)) < 0 ||
		(r = find_project(req, api, &record, err)) < 0)
		return r;
	list_page_init(&listing.page, limit);
	/* One more tells whether there is a next page. */
	r = store_project_file_list(engine_store(api->engine), record.id, after,
		(unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "files", list_page_path_cursor(listing.last));
	list_page_fini(&listing.page);
	project_record_fini(&record);
	return r;
}

/* Always to be saved, never shown: a page of a project would run in the origin of the API. */
static void set_file_headers(struct request *req, const struct project_file *file, const char *tag)
{
	char disposition[FILE_ENTRY_DISPOSITION_LEN];

	file_entry_disposition(file->path, "", disposition);
	request_answer_header(req, "Content-Disposition", disposition);
	request_answer_header(req, "X-Content-Type-Options", "nosniff");
	request_answer_header(req, "ETag", tag);
	request_answer_header(req, "Accept-Ranges", "bytes");
}

static int send_file(struct request *req, struct api *api, const struct project_record *record,
	const struct project_file *file, const char *tag, struct err *err)
{
	const char *wanted =
		range_header(request_header(req, "Range"), request_header(req, "If-Range"), tag);
	struct share *share = NULL;
	struct range range;
	char text[96];
	int fd = -1, r = range_read(wanted, file->bytes, &range, err);

	if (r < 0) {
		snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)file->bytes);
		request_answer_header(req, "Content-Range", text);
		return r;
	}
	if ((r = take_place(req, api, &share, err)) < 0)
		return r;
	r = projects_open_file(api->projects, record->id, file, &fd, err);
	if (r == 0 && lseek(fd, (off_t)range.offset, SEEK_SET) < 0) {
		r = err_sys(err, "read %.200s", file->path);
		fd_close(fd);
	}
	if (r == 0 && range.partial) {
		snprintf(text, sizeof(text), "bytes %llu-%llu/%llu",
			(unsigned long long)range.offset,
			(unsigned long long)(range.offset + range.length - 1),
			(unsigned long long)file->bytes);
		request_answer_header(req, "Content-Range", text);
	}
	if (r == 0)
		r = file_sender_answer(
			req, range.partial ? 206 : 200, file->type, fd, range.length, share, err);
	if (r < 0)
		share_give_back(share);
	return r;
}

HANDLER(project_files_get)
{
	struct api *api = context;
	const char *known = request_header(req, "If-None-Match");
	char tag[PROJECT_SHA256_LEN + 3];
	struct project_record record;
	struct project_file file;
	int r = find_file(req, api, &record, &file, err);

	if (r < 0)
		return r;
	snprintf(tag, sizeof(tag), "\"%s\"", file.sha256);
	set_file_headers(req, &file, tag);
	if (known && file_entry_tag_matches(known, tag))
		request_answer_empty(req, 304);
	else
		r = send_file(req, api, &record, &file, tag, err);
	project_record_fini(&record);
	return r;
}

HANDLER(project_files_patch)
{
	struct api *api = context;
	struct project_record record;
	struct project_file file, moved;
	const char *path;
	int r = project_body_decode_move(request_body(req), &path, err);

	if (r < 0 || (r = find_file(req, api, &record, &file, err)) < 0)
		return r;
	r = projects_move_file(api->projects, &record, &file, path, &moved, err);
	project_record_fini(&record);
	if (r == 0)
		request_answer_json(req, 200, project_file_to_json(api, &moved));
	return r;
}

HANDLER(project_files_delete)
{
	struct api *api = context;
	struct project_record record;
	struct project_file file;
	int r = find_file(req, api, &record, &file, err);

	if (r < 0)
		return r;
	r = projects_delete_file(api->projects, &record, &file, err);
	project_record_fini(&record);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}
