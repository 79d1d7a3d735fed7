/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/result_reader.h"

#include <string.h>

void result_reader_init(struct result_reader *reader,
	void (*take)(void *arg, const char *kind, json_t *value, size_t len), void *arg)
{
	*reader = (struct result_reader){
		.line = BUF_INIT(RESULT_READER_LINE_MAX), .take = take, .arg = arg};
}

void result_reader_fini(struct result_reader *reader)
{
	buf_fini(&reader->line);
}

/* Takes the marker off a line; false if it has another, or none. */
static bool skip_marker(const struct result_reader *reader, const uint8_t **data, size_t *len)
{
	size_t size = reader->marker ? strlen(reader->marker) + 1 : 0;

	if (size > 0 && (*len < size || memcmp(*data, reader->marker, size - 1) != 0 ||
				(*data)[size - 1] != ' '))
		return false;
	*data += size;
	*len -= size;
	return true;
}

static void take_line(struct result_reader *reader, const uint8_t *data, size_t len)
{
	json_t *line = NULL;
	void *first;

	if (len == 0 && reader->marker)
		return;
	if (skip_marker(reader, &data, &len))
		line = json_loadb(
			(const char *)data, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	first = json_object_size(line) == 1 ? json_object_iter(line) : NULL;

	if (first)
		reader->take(reader->arg, json_object_iter_key(first),
			json_object_iter_value(first), len);
	else
		reader->bad++;
	json_decref(line);
}

static void end_line(struct result_reader *reader, const uint8_t *data, size_t len)
{
	if (reader->is_skipping) {
		reader->is_skipping = false;
		reader->bad++;
	} else if (reader->line.len == 0) {
		take_line(reader, data, len);
	} else if (buf_append(&reader->line, data, len) == 0) {
		take_line(reader, reader->line.data, reader->line.len);
	} else {
		reader->bad++;
	}
	buf_fini(&reader->line);
}

void result_reader_put(struct result_reader *reader, const uint8_t *data, size_t len)
{
	const uint8_t *end = data + len, *newline;

	while ((newline = memchr(data, '\n', (size_t)(end - data)))) {
		end_line(reader, data, (size_t)(newline - data));
		data = newline + 1;
	}
	if (data < end && !reader->is_skipping &&
		buf_append(&reader->line, data, (size_t)(end - data)) < 0) {
		buf_fini(&reader->line);
		reader->is_skipping = true;
	}
}

void result_reader_cut(struct result_reader *reader)
{
	if (reader->line.len > 0 || reader->is_skipping)
		reader->bad++;
	buf_fini(&reader->line);
	reader->is_skipping = false;
}
