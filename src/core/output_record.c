/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output_record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

void output_record_encode(uint8_t header[OUTPUT_RECORD_HEADER], bool is_stderr, uint64_t len)
{
	uint32_t length = len < OUTPUT_RECORD_OPEN ? (uint32_t)len : OUTPUT_RECORD_OPEN;
	uint32_t value = htole32(length * 2 + is_stderr);

	memcpy(header, &value, OUTPUT_RECORD_HEADER);
}

static size_t read_at(int fd, void *data, size_t len, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, data, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
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

bool output_record_read(struct output_window *window, int fd, uint64_t size, uint64_t at,
	struct output_record *ret_record)
{
	uint8_t header[OUTPUT_RECORD_HEADER];
	uint64_t there;
	uint32_t value;
	size_t got = 0;

	if (at >= size || size - at <= sizeof(header))
		return false;
	while (got < sizeof(header)) {
		size_t n = output_record_fetch(
			window, fd, size, at + got, header + got, sizeof(header) - got);

		if (n == 0)
			return false;
		got += n;
	}
	memcpy(&value, header, sizeof(value));
	value = le32toh(value);
	/* There are no empty records; a stretch of zeros is what a failure of power leaves. */
	if (value / 2 == 0)
		return false;
	there = size - at - sizeof(header);
	ret_record->is_stderr = value % 2;
	ret_record->is_cut = value / 2 != OUTPUT_RECORD_OPEN && value / 2 > there;
	ret_record->is_open = value / 2 == OUTPUT_RECORD_OPEN || ret_record->is_cut;
	ret_record->len = ret_record->is_open ? there : value / 2;
	return true;
}
