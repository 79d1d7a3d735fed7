/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes text into an array of fixed size.
 *
 * snprintf returns the length that the text would have with enough room. Code that takes that for
 * the length of the array's content reads or writes beyond the array as soon as the text is cut. So
 * the tree never uses the value of snprintf as a length (scripts/layers.sh checks): it uses this
 * function, or a struct buf where the text may be long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FORMAT_SIZE_LEN 24

/* A number of bytes for people: "0 B", "1.5 MiB", "2 GiB". Three digits are enough to compare two. */
void format_size(uint64_t bytes, char text[FORMAT_SIZE_LEN]);

/* How many bytes at the end of a text begin a character of UTF-8 whose rest is not there: 0 to 3. */
size_t format_unfinished(const void *text, size_t len);

/* Ends a text that fills its size, and so may have lost its end, at its last whole word, with "...". */
void format_end_at_word(char *text, size_t size);

/*
 * Appends to a text of len bytes. Returns the new length, which is always less than size: a text
 * that does not fit loses its end.
 */
size_t format_append(char *text, size_t size, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
