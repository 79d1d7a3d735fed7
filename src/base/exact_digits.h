/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With how many digits a JSON document is written so that each of its numbers is read back as it was. 17 are always
 * enough, but write 0.1 as 0.10000000000000001.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define EXACT_DIGITS_LEAST 15 /* as many decimal digits survive in any double */
#define EXACT_DIGITS_MOST  17

static inline size_t exact_digits_of(double number, size_t least)
{
	char text[32];

	for (; least < EXACT_DIGITS_MOST; least++) {
		snprintf(text, sizeof(text), "%.*g", (int)least, number);
		if (strtod(text, NULL) == number)
			break;
	}
	return least;
}

/* Looks through a document until as many digits are needed as there can be. */
static inline size_t exact_digits_from(const json_t *document, size_t digits)
{
	const char *name;
	json_t *part;
	size_t i;

	if (json_is_real(document))
		return exact_digits_of(json_real_value(document), digits);
	json_array_foreach((json_t *)document, i, part)
	{
		if (digits < EXACT_DIGITS_MOST)
			digits = exact_digits_from(part, digits);
	}
	json_object_foreach((json_t *)document, name, part)
	{
		if (digits < EXACT_DIGITS_MOST)
			digits = exact_digits_from(part, digits);
	}
	return digits;
}

/* For JSON_REAL_PRECISION; NULL is a document without numbers. */
static inline size_t exact_digits(const json_t *document)
{
	return exact_digits_from(document, EXACT_DIGITS_LEAST);
}
