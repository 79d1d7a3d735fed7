/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The length of the character that a byte begins; 0 if it begins none. */
static size_t character_len(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

size_t format_unfinished(const void *text, size_t len)
{
	const uint8_t *data = text;

	for (size_t back = 1; back <= 3 && back <= len; back++) {
		uint8_t byte = data[len - back];

		if ((byte & 0xc0) == 0x80)
			continue; /* inside a character: look further back */
		return character_len(byte) > back ? back : 0;
	}
	return 0;
}

size_t format_append(char *text, size_t size, size_t len, const char *fmt, ...)
{
	size_t room;
	va_list ap;
	int n;

	assert(len < size);
	room = size - len;
	va_start(ap, fmt);
	n = vsnprintf(text + len, room, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text[len] = '\0';
		return len;
	}
	return (size_t)n < room ? len + (size_t)n : size - 1;
}

void format_size(uint64_t bytes, char text[FORMAT_SIZE_LEN])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	/* From 999.5 on "%.3g" would switch to an exponent. */
	while (value >= 999.5 && unit + 1 < array_len(names)) {
		value /= 1024;
		unit++;
	}
	snprintf(text, FORMAT_SIZE_LEN, "%.3g %s", value, names[unit]);
}

void format_end_at_word(char *text, size_t size)
{
	static const char more[] = "...";
	char *end;

	if (size <= sizeof(more) || strlen(text) + 1 < size)
		return;
	text[size - sizeof(more)] = '\0';
	end = strrchr(text, ' ');
	strcpy(end ? end + 1 : text + size - sizeof(more), more);
}
