/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text[0] || (text[0] == '0' && text[1]))
		return -EINVAL;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
			return -ERANGE;
	}
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}
