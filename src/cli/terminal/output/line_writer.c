/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/line_writer.h"

#include "base/clock.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct line_writer_half {
	int fd;
	int64_t at_ms; /* of its first byte */
	struct buf bytes;
};

struct line_writer_held {
	int fd;
	int64_t at_ms;
	char *bytes;
	size_t len;
};

#define HALVES 2 /* standard output and standard error */

static void forget_held(struct line_writer *writer)
{
	for (size_t i = 0; i < writer->held_count; i++)
		free(writer->held[i].bytes);
	free(writer->held);
	writer->held = NULL;
	writer->held_count = writer->held_next = writer->held_room = 0;
}

void line_writer_fini(struct line_writer *writer)
{
	for (size_t i = 0; writer->half && i < HALVES; i++)
		buf_fini(&writer->half[i].bytes);
	free(writer->half);
	writer->half = NULL;
	forget_held(writer);
}

static struct line_writer_half *half_of(struct line_writer *writer, int fd)
{
	if (!writer->half) {
		writer->half = mem_new(HALVES * sizeof(*writer->half));
		writer->half[0] = (struct line_writer_half){
			.fd = STDOUT_FILENO, .bytes = BUF_INIT(LINE_WRITER_LINE_MAX)};
		writer->half[1] = (struct line_writer_half){
			.fd = STDERR_FILENO, .bytes = BUF_INIT(LINE_WRITER_LINE_MAX)};
	}
	return &writer->half[fd == STDERR_FILENO];
}

/* Room for one more; with a bound the oldest goes for the newest. */
static struct line_writer_held *next_place(struct line_writer *writer)
{
	struct line_writer_held *place;

	if (writer->held_next == writer->held_room &&
		(!writer->tail || writer->held_room < writer->tail)) {
		size_t room = writer->held_room ? writer->held_room * 2 : 64;

		if (writer->tail && room > writer->tail)
			room = writer->tail;
		writer->held = reallocarray(writer->held, room, sizeof(*writer->held));
		if (!writer->held)
			abort();
		writer->held_room = room;
	}
	if (writer->tail && writer->held_next == writer->tail)
		writer->held_next = 0;
	place = &writer->held[writer->held_next++];
	if (writer->held_count < writer->held_next)
		writer->held_count++;
	else
		free(place->bytes);
	return place;
}

static void hold(struct line_writer *writer, const struct line_writer_half *half, struct buf *line)
{
	struct line_writer_held *place = next_place(writer);

	*place = (struct line_writer_held){.fd = half->fd, .at_ms = half->at_ms, .len = line->len};
	place->bytes = buf_take_str(line);
}

static void put_time(struct buf *line, int64_t at_ms)
{
	char at[CLOCK_TEXT_LEN] = "-";

	if (at_ms > 0)
		clock_format(at_ms, at);
	buf_printf(line, "%-24s ", at);
}

static int emit(struct line_writer *writer, struct line_writer_half *half, struct err *err)
{
	auto_(buf_fini) struct buf line = BUF_INIT(LINE_WRITER_LINE_MAX + 4096);
	int r = 0;

	if (half->at_ms < writer->since_ms) {
		half->bytes.len = 0;
		return 0;
	}
	if (writer->prefix)
		buf_append_str(&line, writer->prefix);
	if (writer->with_times)
		put_time(&line, half->at_ms);
	buf_append(&line, half->bytes.data, half->bytes.len);
	buf_append_str(&line, "\n");
	if (writer->holds)
		hold(writer, half, &line);
	else
		r = cli_write(half->fd, line.data, line.len, err);
	half->bytes.len = 0;
	return r;
}

int line_writer_add(
	struct line_writer *writer, int fd, const void *data, size_t len, struct err *err)
{
	struct line_writer_half *half = half_of(writer, fd);
	const char *at = data;

	while (len > 0) {
		const char *end = memchr(at, '\n', len);
		size_t part = end ? (size_t)(end - at) : len;
		size_t room = LINE_WRITER_LINE_MAX - half->bytes.len;
		int r;

		if (half->bytes.len == 0)
			half->at_ms = writer->at_ms;
		if (part > room)
			part = room;
		buf_append(&half->bytes, at, part);
		at += part;
		len -= part;
		if (len > 0 && *at == '\n') {
			at++;
			len--;
		} else if (half->bytes.len < LINE_WRITER_LINE_MAX) {
			continue;
		}
		r = emit(writer, half, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The first of those that a writer holds, behind `done` that are out already; NULL if there is none. */
static const struct line_writer_held *held_at(const struct line_writer *writer, size_t done)
{
	bool is_full = writer->tail && writer->held_count == writer->tail;
	size_t first = is_full ? writer->held_next : 0;

	if (done == writer->held_count)
		return NULL;
	return &writer->held[(first + done) % writer->held_count];
}

int line_writer_release(struct line_writer *const writers[], size_t count, struct err *err)
{
	auto_free size_t *done = mem_new(count * sizeof(*done) + 1);
	int r = 0;

	while (r == 0) {
		const struct line_writer_held *first = NULL;
		size_t from = 0;

		for (size_t i = 0; i < count; i++) {
			const struct line_writer_held *line = held_at(writers[i], done[i]);

			if (!line || (first && first->at_ms <= line->at_ms))
				continue;
			first = line;
			from = i;
		}
		if (!first)
			break;
		done[from]++;
		r = cli_write(first->fd, first->bytes, first->len, err);
	}
	for (size_t i = 0; i < count; i++) {
		writers[i]->holds = false;
		forget_held(writers[i]);
	}
	return r;
}

int line_writer_flush(struct line_writer *writer, struct err *err)
{
	int r = 0;

	for (size_t i = 0; writer->half && i < HALVES && r == 0; i++) {
		if (writer->half[i].bytes.len > 0)
			r = emit(writer, &writer->half[i], err);
	}
	return r;
}
