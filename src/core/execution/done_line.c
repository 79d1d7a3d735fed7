/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/done_line.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

void done_line_init(struct done_line *line, const char *id)
{
	*line = (struct done_line){0};
	snprintf(line->id, sizeof(line->id), "%s", id);
}

static uint64_t read_number(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

static bool is_it(struct done_line *line)
{
	size_t id_len = strlen(line->id), skip = id_len ? id_len + 1 : 0;
	json_t *document, *done;
	bool found;

	if (line->is_long || line->len < skip + 2 || memcmp(line->text, line->id, id_len) != 0 ||
		(skip && line->text[id_len] != ' '))
		return false;
	document = json_loadb(line->text + skip, line->len - skip, 0, NULL);
	done = json_object_get(document, "done");
	found = json_is_object(done);
	if (found) {
		line->cpu_us = read_number(done, "cpu_us");
		line->memory_bytes = read_number(done, "memory");
		line->has_outputs = !json_is_false(json_object_get(done, "outputs"));
	}
	json_decref(document);
	return found;
}

static void add(struct done_line *line, const uint8_t *data, size_t len)
{
	if (line->is_long || len > sizeof(line->text) - line->len) {
		line->is_long = true;
		return;
	}
	memcpy(line->text + line->len, data, len);
	line->len += len;
}

bool done_line_put(struct done_line *line, const uint8_t *data, size_t len)
{
	const uint8_t *end = data + len, *newline;

	while ((newline = memchr(data, '\n', (size_t)(end - data)))) {
		bool found;

		add(line, data, (size_t)(newline - data));
		found = is_it(line);
		line->len = 0;
		line->is_long = false;
		if (found)
			return true;
		data = newline + 1;
	}
	add(line, data, (size_t)(end - data));
	return false;
}
