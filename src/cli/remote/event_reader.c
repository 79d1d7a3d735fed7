/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/event_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void event_reader_init(struct event_reader *reader)
{
	*reader = (struct event_reader){
		.line = BUF_INIT(EVENT_READER_MAX),
		.data = BUF_INIT(EVENT_READER_MAX),
	};
}

void event_reader_fini(struct event_reader *reader)
{
	buf_fini(&reader->line);
	buf_fini(&reader->data);
}

/* A name or id too long for its place is cut: neither is anything we act on. */
static void set_text(char *place, size_t size, const char *value, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(place, value, len);
	place[len] = '\0';
}

static int add_field(struct event_reader *reader, const char *name, size_t name_len,
	const char *value, size_t len)
{
	if (name_len == 5 && memcmp(name, "event", 5) == 0) {
		set_text(reader->name, sizeof(reader->name), value, len);
	} else if (name_len == 2 && memcmp(name, "id", 2) == 0) {
		if (!memchr(value, '\0', len))
			set_text(reader->id, sizeof(reader->id), value, len);
	} else if (name_len == 4 && memcmp(name, "data", 4) == 0) {
		int r = reader->has_data ? buf_append(&reader->data, "\n", 1) : 0;

		if (r < 0)
			return r;
		reader->has_data = true;
		return buf_append(&reader->data, value, len);
	}
	return 0;
}

static int dispatch(struct event_reader *reader, event_fn visit, void *arg)
{
	struct event event = {
		.name = reader->name[0] ? reader->name : "message",
		.id = reader->id,
		.data = (const char *)reader->data.data,
		.data_len = reader->data.len,
	};
	int r = 0;

	if (reader->has_data) {
		if (!event.data)
			event.data = "";
		r = visit(&event, arg);
	}
	reader->name[0] = '\0';
	reader->has_data = false;
	reader->data.len = 0;
	return r;
}

static int end_line(struct event_reader *reader, event_fn visit, void *arg)
{
	const char *line = (const char *)reader->line.data;
	size_t len = reader->line.len;
	const char *colon;
	const char *value;

	reader->line.len = 0;
	if (!reader->began) {
		reader->began = true;
		if (len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
			line += 3;
			len -= 3;
		}
	}
	if (len == 0)
		return dispatch(reader, visit, arg);
	colon = memchr(line, ':', len);
	if (colon == line)
		return 0;
	if (!colon)
		return add_field(reader, line, len, line + len, 0);
	value = colon + 1;
	if (value < line + len && *value == ' ')
		value++;
	return add_field(reader, line, (size_t)(colon - line), value, (size_t)(line + len - value));
}

static const char *find_line_end(const char *at, size_t len)
{
	const char *lf = memchr(at, '\n', len);
	const char *cr = memchr(at, '\r', lf ? (size_t)(lf - at) : len);

	return cr ? cr : lf;
}

int event_reader_feed(
	struct event_reader *reader, const char *bytes, size_t len, event_fn visit, void *arg)
{
	const char *end = bytes + len;

	while (bytes < end) {
		const char *stop;
		int r;

		if (reader->skip_newline && *bytes == '\n') {
			reader->skip_newline = false;
			bytes++;
			continue;
		}
		reader->skip_newline = false;
		stop = find_line_end(bytes, (size_t)(end - bytes));
		r = buf_append(&reader->line, bytes, (size_t)((stop ? stop : end) - bytes));
		if (r < 0)
			return r;
		if (!stop)
			return 0;
		reader->skip_newline = *stop == '\r';
		bytes = stop + 1;
		r = end_line(reader, visit, arg);
		if (r != 0)
			return r;
	}
	return 0;
}
