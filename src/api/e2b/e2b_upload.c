/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that E2B's clients write: one as the whole body, or several as parts of a form, each of which goes to a channel of
 * its own (core/files/file_channel.h) as its bytes come.
 */
#include "api/e2b/e2b_call.h"
#include "base/fd.h"
#include "core/files/file_channel.h"
#include "core/files/paths.h"
#include "http/multipart.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define READ_SIZE (64u << 10)

struct form {
	struct sandbox *sandbox;
	const char *path; /* that the query gives; NULL: each part says its own */
	json_t *written;
	int fd; /* of the file that is being written; -1: none */
	char at[AGENT_PATH_MAX];
};

static int begin_file(struct form *form, const char *name, struct err *err)
{
	struct file_channel_answer before;
	struct buf more = BUF_INIT(16);
	char path[E2B_PATH_MAX];
	int r;

	if (!e2b_call_resolve(name, path))
		return err_set(err, ERR_INVALID, "the path is too long");
	r = paths_clean(path, form->at, err);
	if (r < 0)
		return r;
	pack_u32(&more, AGENT_MODE_KEEP);
	pack_u64(&more, AGENT_SIZE_UNKNOWN);
	r = file_channel_ask(
		form->sandbox, AGENT_FILE_WRITE, form->at, &more, &before, &form->fd, err);
	buf_fini(&more);
	return r;
}

static int put_chunk(struct form *form, const void *data, size_t len, struct err *err)
{
	struct buf head = BUF_INIT(4);
	int r;

	pack_u32(&head, (uint32_t)len);
	r = fd_write_full(form->fd, head.data, head.len);
	buf_fini(&head);
	if (r == 0 && len > 0)
		r = fd_write_full(form->fd, data, len);
	return r < 0 ? file_channel_broken(r, err) : 0;
}

static int end_file(struct form *form, struct err *err)
{
	struct file_channel_answer answer;
	const char *name = strrchr(form->at, '/');
	int r = put_chunk(form, NULL, 0, err);

	if (r == 0 || r == -EPIPE)
		r = file_channel_read_answer(form->fd, form->at, &answer, err);
	fd_close(form->fd);
	form->fd = -1;
	if (r == 0)
		json_array_append_new(
			form->written, json_pack("{s:s, s:s, s:s}", "path", form->at, "name",
					       name ? name + 1 : form->at, "type", "file"));
	return r;
}

/* --- a form --- */

static int begin_part(void *arg, const struct multipart_part *part, struct err *err)
{
	struct form *form = arg;

	if (!part->is_file)
		return 0;
	return begin_file(form, form->path ? form->path : part->file_name, err);
}

static int add_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct form *form = arg;

	return form->fd >= 0 && len > 0 ? put_chunk(form, data, len, err) : 0;
}

static int end_part(void *arg, struct err *err)
{
	struct form *form = arg;

	return form->fd >= 0 ? end_file(form, err) : 0;
}

/* --- reading --- */

static int pass_body(
	struct request *req, struct form *form, struct multipart *multipart, struct err *err)
{
	auto_free uint8_t *data = mem_new(READ_SIZE);
	ssize_t n = 1;
	int r = 0;

	while (r == 0 && n > 0) {
		n = request_read(req, data, READ_SIZE);
		if (n == -EAGAIN)
			r = err_set(err, ERR_RATE, "too many uploads are under way");
		else if (n < 0)
			r = err_set(err, ERR_INVALID, "the upload ended early");
		else if (n > 0)
			r = multipart ? multipart_feed(multipart, data, (size_t)n, err)
				      : put_chunk(form, data, (size_t)n, err);
	}
	return r;
}

static int receive(struct request *req, struct form *form, struct err *err)
{
	static const struct multipart_events events = {
		.begin = begin_part, .data = add_data, .end = end_part};
	const char *type = request_header(req, "Content-Type");
	auto_(multipart_closep) struct multipart *multipart = NULL;
	int r;

	if (type && strncasecmp(type, "multipart/", 10) == 0) {
		r = multipart_open(type, &events, form, &multipart, err);
		if (r == 0)
			r = pass_body(req, form, multipart, err);
		return r < 0 ? r : multipart_finish(multipart, err);
	}
	if (!form->path)
		return err_set(err, ERR_INVALID, "the parameter path is missing");
	r = begin_file(form, form->path, err);
	if (r == 0)
		r = pass_body(req, form, NULL, err);
	return r < 0 ? r : end_file(form, err);
}

HANDLER(e2b_upload_write)
{
	struct form form = {.fd = -1, .path = request_query(req, "path")};
	int status, r = api_sandbox(req, context, &form.sandbox, err);

	form.written = json_array();
	if (r == 0)
		r = receive(req, &form, err);
	if (form.fd >= 0)
		fd_close(form.fd); /* what it has is dropped */
	if (r == 0) {
		request_answer_json(req, 200, form.written);
		return 0;
	}
	json_decref(form.written);
	status = err_class((enum err_kind)err->kind)->http_status;
	request_answer_json(req, status == 409 ? 400 : status,
		json_pack("{s:i, s:s}", "code", status, "message", err->message));
	return 0;
}
