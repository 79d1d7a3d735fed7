/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/mcp_content.h"

#include "api/files/file_entry.h"
#include "api/text.h"
#include "base/fd.h"
#include "base/format.h"
#include "core/files/file_channel.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"
#include "core/sandbox/sandbox_request.h"

#include <string.h>

#define PART_MAX     (256u << 10) /* bytes of a file at once */
#define PART_DEFAULT (48u << 10)
#define OUTPUT_MAX   (48u << 10) /* bytes of what a process printed */

/* --- a part of a file --- */

struct read_body {
	int64_t offset, limit;
};

static const struct field read_rows[] = {
	{"offset", FIELD_INTEGER, offsetof(struct read_body, offset), 0, INT64_MAX, 0,
		"Where to begin, in bytes; 0 if left out."},
	{"limit", FIELD_INTEGER, offsetof(struct read_body, limit), 1, PART_MAX, 0,
		"How many bytes at most; 49152 if left out."},
};
const struct fields mcp_content_read_fields = {read_rows, array_len(read_rows)};

static int read_part(struct sandbox *sandbox, const char *path, const struct read_body *body,
	json_t **ret_answer, struct err *err)
{
	uint64_t offset = body->offset == FIELD_ABSENT ? 0 : (uint64_t)body->offset;
	uint64_t range[2] = {
		offset, body->limit == FIELD_ABSENT ? PART_DEFAULT : (uint64_t)body->limit};
	struct file_channel_answer answer;
	auto_free uint8_t *data = NULL;
	auto_fd int fd = -1;
	size_t len;
	int r = file_channel_ask(sandbox, AGENT_FILE_READ, path, NULL, &answer, &fd, err);

	if (r < 0)
		return r;
	if (offset > answer.file.size) {
		char has[FORMAT_SIZE_LEN];

		format_size(answer.file.size, has);
		return err_set(err, ERR_RANGE, "the offset is behind the end of %s, which has %s",
			path, has);
	}
	if (range[1] > answer.file.size - offset)
		range[1] = answer.file.size - offset;
	len = (size_t)range[1];
	data = mem_new(len + 1);
	r = fd_write_full(fd, range, sizeof(range));
	if (r == 0)
		r = fd_read_full(fd, data, len);
	if (r < 0)
		return file_channel_broken(r, err);
	/* A character that is cut in half makes no part of a text something else. */
	if (offset + len < answer.file.size && len > 4)
		len -= format_unfinished(data, len);
	*ret_answer = json_pack("{s:s, s:I, s:I, s:b}", "path", path, "size",
		(json_int_t)answer.file.size, "next_offset", (json_int_t)(offset + len),
		"truncated", offset + len < answer.file.size);
	text_set(*ret_answer, "content", data, len);
	return 0;
}

HANDLER(mcp_content_read_file)
{
	char path[AGENT_PATH_MAX];
	struct read_body body;
	struct sandbox *sandbox;
	json_t *answer;
	int r;

	fields_clear(&mcp_content_read_fields, &body);
	if ((r = fields_decode(&mcp_content_read_fields, request_body(req), &body, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = read_part(sandbox, path, &body, &answer, err)) < 0)
		return r;
	request_answer_json(req, 200, answer);
	return 0;
}

/* --- a whole file --- */

struct write_body {
	const char *content, *content_base64;
};

static const struct field write_rows[] = {
	{"content", FIELD_STRING, offsetof(struct write_body, content), 0, REQUEST_BODY_MAX, 0,
		"What the file is to have, as text."},
	{"content_base64", FIELD_STRING, offsetof(struct write_body, content_base64), 0,
		REQUEST_BODY_MAX, 0, "The same in base64, for what is no text."},
};
const struct fields mcp_content_write_fields = {write_rows, array_len(write_rows)};

static int write_whole(struct request *req, struct sandbox *sandbox, const char *path,
	uint32_t mode, const struct write_body *body, struct err *err)
{
	auto_free uint8_t *decoded = NULL;
	struct file_channel_answer answer;
	const void *data = body->content;
	ssize_t len = body->content ? (ssize_t)strlen(body->content) : 0;
	int r;

	if (!body->content == !body->content_base64)
		return err_explain(err, ERR_INVALID, "invalid_argument", NULL,
			"one of the arguments content and content_base64 must be given");
	if (body->content_base64) {
		len = text_decode_base64(body->content_base64, &decoded);
		if (len < 0)
			return err_explain(err, ERR_INVALID, "invalid_argument", NULL,
				"argument content_base64 must be base64");
		data = decoded;
	}
	r = file_channel_store(sandbox, path, mode, data, (size_t)len, &answer, err);
	if (r < 0)
		return r;
	request_answer_json(req, (answer.file.flags & AGENT_FILE_EXISTED) ? 200 : 201,
		file_entry_to_json(path, &answer));
	return 0;
}

HANDLER(mcp_content_write_file)
{
	char path[AGENT_PATH_MAX];
	struct write_body body;
	struct sandbox *sandbox;
	uint32_t mode;
	int r;

	fields_clear(&mcp_content_write_fields, &body);
	if ((r = fields_decode(&mcp_content_write_fields, request_body(req), &body, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = api_query_mode(req, &mode, err)) < 0)
		return r;
	return write_whole(req, sandbox, path, mode, &body, err);
}

/* --- what a process printed --- */

/* Both streams as one text, in their order, as a person would see it. */
static void gather(struct output_log *log, struct buf *text, bool *ret_cut)
{
	uint64_t from = output_cursor_tail(log, OUTPUT_MAX);
	struct output_cursor *cursor = output_cursor_new(log, from);
	auto_free uint8_t *data = mem_new(OUTPUT_MAX);
	struct output_piece piece;

	*ret_cut = from > 0;
	for (;;) {
		output_cursor_read(cursor, data, OUTPUT_MAX, &piece);
		if (piece.kind == OUTPUT_NONE || text->failed)
			break;
		if (piece.kind == OUTPUT_CUT)
			*ret_cut = true;
		else if (piece.kind != OUTPUT_RESULT)
			text_put_plain(text, data, (size_t)(piece.next - piece.offset));
	}
	output_cursor_free(cursor);
}

HANDLER(mcp_content_read_output)
{
	auto_(buf_fini) struct buf text = BUF_INIT(OUTPUT_MAX * 4);
	const char *name = request_param(req, "process");
	uint32_t number = process_name_parse(name);
	struct output_log *log;
	struct sandbox *sandbox;
	bool is_cut;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0 && !number)
		r = process_not_found(name, err);
	if (r == 0)
		r = process_table_open_log(sandbox, number, &log, err);
	if (r < 0)
		return r;
	gather(log, &text, &is_cut);
	output_log_unref(log);
	request_answer_json(req, 200,
		json_pack("{s:s, s:o, s:b}", "process", name, "output",
			json_stringn(text.len ? (const char *)text.data : "", text.len),
			"truncated", is_cut));
	return 0;
}

/* --- a preview --- */

HANDLER(mcp_content_open_port)
{
	struct sandbox_port_change change = {0};
	struct sandbox_port port;
	struct sandbox *sandbox;
	int r;

	if ((r = api_port(req, &change.number, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = sandbox_request_change_port(sandbox, &change, &port, err)) < 0)
		return r;
	return preview_links_create(req, context, err);
}
