/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* In the upper half of a mark: what has another value is no mark. */
#define MARK_MAGIC 0x534c4f47ull

/* In the place of a length: a time comes first. There are no empty records, so no length is like this. */
#define DATED 1u

/* In a time: the record is of the stream for results. */
#define OF_RESULT (1ull << 63)

void output_record_encode(uint8_t header[OUTPUT_RECORD_LENGTH], int stream, uint64_t len)
{
	uint32_t length = len < OUTPUT_RECORD_OPEN ? (uint32_t)len : OUTPUT_RECORD_OPEN;
	uint32_t value = htole32(length * 2 + (stream == 2));

	memcpy(header, &value, OUTPUT_RECORD_LENGTH);
}

void output_record_encode_open(uint8_t header[OUTPUT_RECORD_HEADER], int stream, int64_t at_ms)
{
	uint32_t dated = htole32(DATED);
	uint64_t time = htole64((uint64_t)at_ms | (stream == 3 ? OF_RESULT : 0));

	memcpy(header, &dated, sizeof(dated));
	memcpy(header + sizeof(dated), &time, sizeof(time));
	output_record_encode(header + sizeof(dated) + sizeof(time), stream, OUTPUT_RECORD_OPEN);
}

static size_t read_at(int fd, void *data, size_t len, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, data, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

int output_mark_write(int fd, uint64_t size)
{
	uint64_t mark = htole64(MARK_MAGIC << 32 | size);
	ssize_t n;

	do
		n = pwrite(fd, &mark, sizeof(mark), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(mark) ? 0 : -EIO;
}

uint64_t output_mark_read(int fd, uint64_t file_size)
{
	uint64_t mark, size;

	if (read_at(fd, &mark, sizeof(mark), 0) != sizeof(mark))
		return OUTPUT_MARK_LEN;
	mark = le64toh(mark);
	size = mark & UINT32_MAX;
	if (mark >> 32 != MARK_MAGIC || size < OUTPUT_MARK_LEN)
		return OUTPUT_MARK_LEN;
	return size < file_size ? size : file_size;
}

size_t output_record_fetch(
	struct output_window *window, int fd, uint64_t size, uint64_t at, void *data, size_t len)
{
	if (at >= size)
		return 0;
	if (len > size - at)
		len = (size_t)(size - at);
	if (len >= sizeof(window->data))
		return read_at(fd, data, len, at);
	if (at < window->at || at - window->at >= window->len) {
		size_t ahead = sizeof(window->data);

		if (ahead > size - at)
			ahead = (size_t)(size - at);
		window->at = at;
		window->len = read_at(fd, window->data, ahead, at);
	}
	if (len > window->len - (at - window->at))
		len = (size_t)(window->len - (at - window->at));
	memcpy(data, window->data + (at - window->at), len);
	return len;
}

/* Reads exactly len bytes, and one more must follow them. */
static bool fetch_all(
	struct output_window *window, int fd, uint64_t size, uint64_t at, void *data, size_t len)
{
	uint8_t *to = data;
	size_t got = 0;

	if (at >= size || size - at <= len)
		return false;
	while (got < len) {
		size_t n = output_record_fetch(window, fd, size, at + got, to + got, len - got);

		if (n == 0)
			return false;
		got += n;
	}
	return true;
}

bool output_record_read(struct output_window *window, int fd, uint64_t size, uint64_t at,
	struct output_record *ret_record)
{
	size_t header = OUTPUT_RECORD_LENGTH;
	uint64_t there, time = 0;
	uint32_t value;

	if (!fetch_all(window, fd, size, at, &value, sizeof(value)))
		return false;
	if (le32toh(value) == DATED) {
		header = OUTPUT_RECORD_HEADER;
		if (!fetch_all(window, fd, size, at + sizeof(value), &time, sizeof(time)) ||
			!fetch_all(window, fd, size, at + sizeof(value) + sizeof(time), &value,
				sizeof(value)))
			return false;
	}
	value = le32toh(value);
	/* There are no empty records; a stretch of zeros is what a failure of power leaves. */
	if (value / 2 == 0)
		return false;
	there = size - at - header;
	ret_record->header = header;
	time = le64toh(time);
	ret_record->at_ms = (int64_t)(time & ~OF_RESULT);
	ret_record->stream = time & OF_RESULT ? 3 : 1 + (int)(value % 2);
	ret_record->is_cut = value / 2 != OUTPUT_RECORD_OPEN && value / 2 > there;
	ret_record->is_open = value / 2 == OUTPUT_RECORD_OPEN || ret_record->is_cut;
	ret_record->len = ret_record->is_open ? there : value / 2;
	return true;
}
