/* SPDX-License-Identifier: Apache-2.0 */
#include "model/size.h"

#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *suffix;
	unsigned shift;
} units[] = {{"Pi", 50}, {"Ti", 40}, {"Gi", 30}, {"Mi", 20}, {"Ki", 10}, {"", 0}};

int size_parse(const char *text, uint64_t *ret_bytes)
{
	char digits[24];
	size_t len = strspn(text, "0123456789");
	uint64_t value;

	if (len == 0 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	for (size_t i = 0; i < array_len(units); i++) {
		int r;

		if (strcmp(text + len, units[i].suffix) != 0)
			continue;
		r = number_parse(digits, 0, INT64_MAX >> units[i].shift, &value);
		if (r == 0)
			*ret_bytes = value << units[i].shift;
		return r;
	}
	return -EINVAL;
}

void size_format(uint64_t bytes, char text[SIZE_TEXT_LEN])
{
	size_t i = 0;

	while (units[i].shift && (bytes == 0 || bytes & ((1ull << units[i].shift) - 1)))
		i++;
	snprintf(text, SIZE_TEXT_LEN, "%llu%s", (unsigned long long)(bytes >> units[i].shift),
		units[i].suffix);
}
