/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and sizes, as settings, queries and bodies have them. */
#include "base/number.h"
#include "model/size.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_new(size + 1), again[SIZE_TEXT_LEN];
	uint64_t value, back;

	if (size > 0)
		memcpy(text, data, size);
	/* A number is written in one way only. */
	if (number_parse(text, 0, UINT64_MAX, &value) == 0) {
		snprintf(again, sizeof(again), "%llu", (unsigned long long)value);
		assert(strcmp(text, again) == 0);
		assert(number_parse(text, value, value, &back) == 0 && back == value);
		assert(value == 0 || number_parse(text, 0, value - 1, &back) < 0);
		assert(value == UINT64_MAX || number_parse(text, value + 1, UINT64_MAX, &back) < 0);
	}
	/* A size may be written in several; its shortest form means the same. */
	if (size_parse(text, &value) == 0) {
		assert(value <= INT64_MAX);
		assert(text[0] >= '0' && text[0] <= '9');
		size_format(value, again);
		assert(strlen(again) <= strlen(text) || value == 0);
		assert(size_parse(again, &back) == 0 && back == value);
	}
	free(text);
	return 0;
}
