/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in a sandbox. A handler opens a channel to a helper inside, reads its answer, and for
 * contents hands the channel to the connection: bytes pass through the daemon without a thread and
 * without growing its memory.
 */
#include "api/files/file_entry.h"
#include "api/files/range.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/number.h"
#include "core/files/file_channel.h"
#include "core/files/paths.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LIST_LIMIT_MAX	   10000
#define LIST_LIMIT_DEFAULT 1000
#define LIST_DEPTH_MAX	   64
#define NEW_DIR_MODE	   0755

/* --- the common beginning --- */

/* The sandbox and the path of the query. */
static int open_request(struct request *req, struct api *api, struct sandbox **ret_sandbox,
	char path[AGENT_PATH_MAX], struct err *err)
{
	int r = api_sandbox(req, api, ret_sandbox, err);

	return r < 0 ? r : api_query_path(req, path, err);
}

/* --- reading --- */

static void set_file_headers(struct request *req, const char *path,
	const struct agent_file_answer *file, const char *tag)
{
	time_t seconds = (time_t)((int64_t)file->mtime_ns / 1000000000); /* may be before 1970 */
	char date[64], disposition[FILE_ENTRY_DISPOSITION_LEN];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	file_entry_disposition(path, "", disposition);
	request_answer_header(req, "Content-Disposition", disposition);
	request_answer_header(req, "ETag", tag);
	request_answer_header(req, "Last-Modified", date);
	request_answer_header(req, "Accept-Ranges", "bytes");
}

static int start_reading(int fd, const struct range *range, struct err *err)
{
	struct buf go = BUF_INIT(16);
	int r;

	pack_u64(&go, range->offset);
	pack_u64(&go, range->length);
	r = fd_write_full(fd, go.data, go.len);
	buf_fini(&go);
	if (r == 0)
		r = fd_set_nonblocking(fd);
	return r < 0 ? file_channel_broken(r, err) : 0;
}

static int answer_file(struct request *req, struct api *api, bool with_content, struct err *err)
{
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX], tag[FILE_ENTRY_TAG_LEN], content_range[96];
	const char *known = request_header(req, "If-None-Match"), *wanted;
	auto_fd int fd = -1;
	struct sandbox *sandbox;
	struct range range;
	int r;

	if ((r = open_request(req, api, &sandbox, path, err)) < 0 ||
		(r = file_channel_ask(sandbox, AGENT_FILE_READ, path, NULL, &answer, &fd, err)) < 0)
		return r;
	file_entry_tag(&answer.file, tag);
	set_file_headers(req, path, &answer.file, tag);
	if (known && file_entry_tag_matches(known, tag)) {
		request_answer_empty(req, 304);
		return 0;
	}
	wanted = range_header(request_header(req, "Range"), request_header(req, "If-Range"), tag);
	r = range_read(wanted, answer.file.size, &range, err);
	if (r < 0) {
		snprintf(content_range, sizeof(content_range), "bytes */%llu",
			(unsigned long long)answer.file.size);
		request_answer_header(req, "Content-Range", content_range);
		return r;
	}
	if (range.partial) {
		snprintf(content_range, sizeof(content_range), "bytes %llu-%llu/%llu",
			(unsigned long long)range.offset,
			(unsigned long long)(range.offset + range.length - 1),
			(unsigned long long)answer.file.size);
		request_answer_header(req, "Content-Range", content_range);
	}
	/* For HEAD the helper is never told to start; it ends when the channel is closed. */
	if (with_content && (r = start_reading(fd, &range, err)) < 0)
		return r;
	request_answer_fd(req, range.partial ? 206 : 200, "application/octet-stream", take_fd(&fd),
		range.length);
	return 0;
}

HANDLER(files_read)
{
	return answer_file(req, context, true, err);
}

HANDLER(files_head)
{
	return answer_file(req, context, false, err);
}

/* --- writing --- */

struct upload {
	int fd;
	char path[AGENT_PATH_MAX];
};

static void end_upload(void *arg)
{
	struct upload *upload = arg;

	fd_close(upload->fd);
	free(upload);
}

static int check_preconditions(
	const struct request *req, const struct agent_file_answer *now, struct err *err)
{
	const char *match = request_header(req, "If-Match");
	const char *none_match = request_header(req, "If-None-Match");
	bool exists = now->kind != AGENT_FILE_NONE;
	char tag[FILE_ENTRY_TAG_LEN];

	file_entry_tag(now, tag);
	if ((match && !(exists && file_entry_tag_matches(match, tag))) ||
		(none_match && exists && file_entry_tag_matches(none_match, tag)))
		return err_explain(err, ERR_PRECONDITION, NULL, "read it again, then decide",
			"the file is not the one that the request is about");
	return 0;
}

static int finish_write(struct request *req, void *arg, bool complete, struct err *err)
{
	struct upload *upload = arg;
	struct file_channel_answer answer;
	char tag[FILE_ENTRY_TAG_LEN];
	int flags = fcntl(upload->fd, F_GETFL), r;

	if (flags < 0 || fcntl(upload->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return err_sys(err, "finish the upload");
	/* If the helper gave up, its answer says why. If the client did, the helper is told, or we would wait
	 * for each other. */
	if (!complete)
		shutdown(upload->fd, SHUT_WR);
	fail_point("upload.received");
	r = file_channel_read_answer(upload->fd, upload->path, &answer, err);
	if (r < 0)
		return r;
	fail_point("upload.written");
	if (!complete)
		return err_set(err, ERR_INVALID, "the upload ended early");
	file_entry_tag(&answer.file, tag);
	request_answer_header(req, "ETag", tag);
	request_answer_json(req, (answer.file.flags & AGENT_FILE_EXISTED) ? 200 : 201,
		file_entry_to_json(upload->path, &answer));
	return 0;
}

HANDLER(files_write)
{
	struct api *api = context;
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(16);
	struct upload *upload = mem_new(sizeof(*upload));
	struct sandbox *sandbox;
	uint32_t mode;
	int r;

	upload->fd = -1;
	request_keep(req, upload, end_upload);
	if ((r = open_request(req, api, &sandbox, upload->path, err)) < 0 ||
		(r = api_query_mode(req, &mode, err)) < 0)
		return r;
	pack_u32(&more, mode);
	pack_u64(&more, request_body_size(req));
	r = file_channel_ask(
		sandbox, AGENT_FILE_WRITE, upload->path, &more, &answer, &upload->fd, err);
	buf_fini(&more);
	if (r < 0 || (r = check_preconditions(req, &answer.file, err)) < 0)
		return r;
	fail_point("upload.opened");
	r = fd_set_nonblocking(upload->fd);
	if (r < 0)
		return err_from(err, r, "start the upload");
	request_receive_to_fd(req, upload->fd, finish_write, upload);
	return 0;
}

/* --- looking --- */

HANDLER(files_stat)
{
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX];
	struct sandbox *sandbox;
	int r;

	if ((r = open_request(req, context, &sandbox, path, err)) < 0 ||
		(r = file_channel_ask(sandbox, AGENT_FILE_STAT, path, NULL, &answer, NULL, err)) <
			0)
		return r;
	request_answer_json(req, 200, file_entry_to_json(path, &answer));
	return 0;
}

static int read_u8(int fd, uint8_t *value, struct err *err)
{
	int r = fd_read_full(fd, value, 1);

	return r < 0 ? err_set(err, ERR_CONFLICT, "the sandbox ended during the request") : 0;
}

static int read_name(int fd, char name[AGENT_PATH_MAX], struct err *err)
{
	int r = file_channel_read_path(fd, name);

	if (r == -EPROTO)
		return err_set(err, ERR_INTERNAL, "the sandbox gave a malformed listing");
	return r < 0 ? file_channel_broken(r, err) : 0;
}

/*
 * Reads entries until the end, or until the page is full; the last name on it, for the next page, stays in last. A
 * helper that has more to say is cut short when the channel is closed.
 */
static int read_entries(int fd, const char *path, struct list_page *page, char last[AGENT_PATH_MAX],
	struct err *err)
{
	const char *joint = strcmp(path, "/") == 0 ? "" : "/";
	char name[AGENT_PATH_MAX];
	uint8_t more = 1;
	int r;

	while ((r = read_u8(fd, &more, err)) == 0 && more) {
		struct file_channel_answer answer;
		auto_free char *full = NULL;

		if (json_array_size(page->items) == page->limit)
			return err_set(err, ERR_INTERNAL, "the sandbox gave a malformed listing");
		if ((r = read_name(fd, name, err)) < 0 ||
			(r = file_channel_read_answer(fd, name, &answer, err)) < 0)
			return r;
		full = mem_printf("%s%s%s", path, joint, name);
		if (!list_page_add(page, file_entry_to_json(full, &answer)))
			return 0;
		memcpy(last, name, sizeof(name));
	}
	return r;
}

HANDLER(files_list)
{
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX], name[AGENT_PATH_MAX] = "";
	struct buf more = BUF_INIT(AGENT_PATH_MAX + 64);
	auto_fd int fd = -1;
	struct sandbox *sandbox;
	uint64_t depth, limit;
	uint8_t unfinished = 0;
	struct list_page page;
	int r;

	if ((r = open_request(req, context, &sandbox, path, err)) < 0 ||
		(r = api_query_number(req, "depth", 1, LIST_DEPTH_MAX, 1, &depth, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = list_page_read_path(req, name, sizeof(name), err)) < 0)
		return r;
	pack_u32(&more, (uint32_t)depth);
	pack_u32(&more, (uint32_t)limit);
	pack_str(&more, name);
	r = file_channel_ask(sandbox, AGENT_FILE_LIST, path, &more, &answer, &fd, err);
	buf_fini(&more);
	if (r < 0)
		return r;
	list_page_init(&page, limit);
	r = read_entries(fd, path, &page, name, err);
	if (r == 0 && !page.has_more) {
		r = read_u8(fd, &unfinished, err);
		page.has_more = unfinished;
	}
	if (r == 0)
		list_page_answer(&page, req, "entries", list_page_path_cursor(name));
	list_page_fini(&page);
	return r;
}

/* --- changing --- */

HANDLER(files_delete)
{
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX];
	struct buf more = BUF_INIT(8);
	struct sandbox *sandbox;
	bool recursive;
	int r;

	if ((r = open_request(req, context, &sandbox, path, err)) < 0 ||
		(r = api_query_boolean(req, "recursive", &recursive, err)) < 0)
		return r;
	pack_u8(&more, recursive);
	r = file_channel_ask(sandbox, AGENT_FILE_REMOVE, path, &more, &answer, NULL, err);
	buf_fini(&more);
	if (r == -EINVAL && strcmp(err->code, "is_a_directory") == 0)
		return err_explain(err, ERR_CONFLICT, "directory_not_empty", "add ?recursive=true",
			"%s is a directory that is not empty", path);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

struct mkdir_body {
	const char *path;
};

static const struct field mkdir_rows[] = {
	{"path", FIELD_STRING, offsetof(struct mkdir_body, path), 1, AGENT_PATH_MAX - 1,
		FIELD_REQUIRED, "The directory; parents are made too."},
};

const struct fields files_mkdir_fields = FIELDS(mkdir_rows);

HANDLER(files_mkdir)
{
	struct file_channel_answer answer;
	struct mkdir_body body = {0};
	char path[AGENT_PATH_MAX];
	struct buf more = BUF_INIT(8);
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = fields_decode(&files_mkdir_fields, request_body(req), &body, err)) < 0 ||
		(r = paths_clean(body.path, path, err)) < 0)
		return r;
	pack_u32(&more, NEW_DIR_MODE);
	r = file_channel_ask(sandbox, AGENT_FILE_MKDIR, path, &more, &answer, NULL, err);
	buf_fini(&more);
	if (r == 0)
		request_answer_json(req, (answer.file.flags & AGENT_FILE_EXISTED) ? 200 : 201,
			file_entry_to_json(path, &answer));
	return r;
}

struct move_body {
	const char *from, *to;
	enum field_boolean overwrite;
};

static const struct field move_rows[] = {
	{"from", FIELD_STRING, offsetof(struct move_body, from), 1, AGENT_PATH_MAX - 1,
		FIELD_REQUIRED, "What is moved."},
	{"to", FIELD_STRING, offsetof(struct move_body, to), 1, AGENT_PATH_MAX - 1, FIELD_REQUIRED,
		"Its new path."},
	{"overwrite", FIELD_BOOLEAN, offsetof(struct move_body, overwrite), 0, 0, 0,
		"Whether something that exists there is replaced."},
};

const struct fields files_move_fields = FIELDS(move_rows);

HANDLER(files_move)
{
	struct file_channel_answer answer;
	struct move_body body = {0};
	char from[AGENT_PATH_MAX], to[AGENT_PATH_MAX];
	struct buf more = BUF_INIT(AGENT_PATH_MAX + 16);
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = fields_decode(&files_move_fields, request_body(req), &body, err)) < 0 ||
		(r = paths_clean(body.from, from, err)) < 0 ||
		(r = paths_clean(body.to, to, err)) < 0)
		return r;
	pack_str(&more, to);
	pack_u8(&more, body.overwrite == FIELD_TRUE);
	r = file_channel_ask(sandbox, AGENT_FILE_MOVE, from, &more, &answer, NULL, err);
	buf_fini(&more);
	if (r == -EEXIST && strcmp(err->code, "file_exists") == 0)
		return err_explain(err, ERR_CONFLICT, "file_exists", "add \"overwrite\": true",
			"%s exists already", to);
	if (r == 0)
		request_answer_json(req, 200, file_entry_to_json(to, &answer));
	return r;
}
