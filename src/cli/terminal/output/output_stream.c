/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/output_stream.h"

#include "base/format.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/terminal/output/line_writer.h"
#include "cli/text/base64.h"
#include "cli/text/human.h"

#include <errno.h>
#include <string.h>

void output_stream_init(struct output_stream *stream, int out_fd, int err_fd)
{
	*stream = (struct output_stream){
		.decoded = BUF_INIT(EVENT_READER_MAX),
		.out_fd = out_fd,
		.err_fd = err_fd,
	};
	event_reader_init(&stream->reader);
}

void output_stream_fini(struct output_stream *stream)
{
	event_reader_fini(&stream->reader);
	buf_fini(&stream->decoded);
	json_decref(stream->result);
	stream->result = NULL;
}

void output_stream_restart(struct output_stream *stream)
{
	event_reader_fini(&stream->reader);
	event_reader_init(&stream->reader);
}

static int write_bytes(struct output_stream *stream, int fd, const void *bytes, size_t len)
{
	return stream->lines ? line_writer_add(stream->lines, fd, bytes, len, stream->err)
			     : cli_write(fd, bytes, len, stream->err);
}

static int write_output(struct output_stream *stream, int fd, const json_t *data)
{
	const json_t *text = json_object_get(data, "data");
	const json_t *encoded = json_object_get(data, "data_base64");
	const char *at = json_string_value(json_object_get(data, "at"));

	if (stream->lines && (!at || human_parse_time(at, &stream->lines->at_ms) < 0))
		stream->lines->at_ms = 0;
	if (json_is_string(text))
		return write_bytes(stream, fd, json_string_value(text), json_string_length(text));
	stream->decoded.len = 0;
	if (!json_is_string(encoded) || base64_decode(json_string_value(encoded),
						json_string_length(encoded), &stream->decoded) < 0)
		return err_set(
			stream->err, ERR_INTERNAL, "the daemon sent output in no known form");
	return write_bytes(stream, fd, stream->decoded.data, stream->decoded.len);
}

static int server_error(const json_t *data, struct err *err)
{
	const json_t *error = json_object_get(data, "error");
	const char *message = json_string_value(json_object_get(error ? error : data, "message"));

	return err_set(err, ERR_INTERNAL, "%s", message ? message : "the daemon gave up");
}

static void tell_cut(const json_t *data)
{
	json_int_t from = json_integer_value(json_object_get(data, "from"));
	json_int_t to = json_integer_value(json_object_get(data, "to"));

	char size[FORMAT_SIZE_LEN];

	format_size(to > from ? (uint64_t)(to - from) : 0, size);
	cli_note("[%s of output are no longer kept: bytes %lld to %lld]", size, (long long)from,
		(long long)to);
}

static int handle(struct output_stream *stream, const char *name, json_t *data)
{
	if (stream->take && stream->take(stream->arg, name, data))
		return 0;
	if (strcmp(name, "stdout") == 0)
		return write_output(stream, stream->out_fd, data);
	if (strcmp(name, "stderr") == 0)
		return write_output(stream, stream->err_fd, data);
	if (strcmp(name, "error") == 0)
		return server_error(data, stream->err);
	if (strcmp(name, "cut") == 0)
		tell_cut(data);
	/* Of a process, and of a job. */
	if (strcmp(name, "exit") != 0 && strcmp(name, "end") != 0)
		return 0;
	json_decref(stream->result);
	stream->result = json_incref(data);
	return OUTPUT_STREAM_ENDED;
}

static int on_event(const struct event *event, void *arg)
{
	struct output_stream *stream = arg;
	json_auto_t *data = json_loadb(event->data, event->data_len, JSON_ALLOW_NUL, NULL);
	int r;

	if (!data)
		return err_set(
			stream->err, ERR_INTERNAL, "the daemon sent an event that is not JSON");
	r = handle(stream, event->name, data);
	if (r >= 0 && number_parse(event->id, 0, UINT64_MAX, &stream->next) == 0)
		stream->has_next = true;
	return r;
}

int output_stream_feed(struct output_stream *stream, const char *bytes, size_t len, struct err *err)
{
	int r;

	stream->err = err;
	r = event_reader_feed(&stream->reader, bytes, len, on_event, stream);
	if (r == -EMSGSIZE) {
		char most[FORMAT_SIZE_LEN];

		format_size(EVENT_READER_MAX, most);
		return err_set(err, ERR_INTERNAL, "the daemon sent an event larger than %s", most);
	}
	return r;
}
