/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/human.h"

#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DURATION_MAX_MS (10ull * 366 * 86400 * 1000)

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{"ms", 1},
	{"s", 1000},
	{"m", 60 * 1000},
	{"h", 3600 * 1000},
	{"d", 86400 * 1000},
};

static const struct unit size_units[] = {
	{"", 1},
	{"Ki", 1ull << 10},
	{"Mi", 1ull << 20},
	{"Gi", 1ull << 30},
	{"Ti", 1ull << 40},
	{"Pi", 1ull << 50},
};

void human_age(int64_t age_ms, char text[HUMAN_LEN])
{
	uint64_t seconds = age_ms > 0 ? (uint64_t)age_ms / 1000 : 0;

	if (seconds < 120)
		snprintf(text, HUMAN_LEN, "%us", (unsigned)seconds);
	else if (seconds < 120 * 60)
		snprintf(text, HUMAN_LEN, "%um", (unsigned)(seconds / 60));
	else if (seconds < 48 * 3600)
		snprintf(text, HUMAN_LEN, "%uh", (unsigned)(seconds / 3600));
	else
		snprintf(text, HUMAN_LEN, "%llud", (unsigned long long)(seconds / 86400));
}

/* Splits "10Gi" into digits and the unit after them; the digits must fit a uint64_t. */
static int split_number(const char *text, uint64_t *ret_value, const char **ret_unit)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];

	if (digits == 0 || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	*ret_unit = text + digits;
	return number_parse(number, 0, UINT64_MAX, ret_value);
}

static int scale(const struct unit *units, size_t count, const char *name, uint64_t value,
	uint64_t *ret_value)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(units[i].name, name) != 0)
			continue;
		return __builtin_mul_overflow(value, units[i].factor, ret_value) ? -ERANGE : 0;
	}
	return -EINVAL;
}

int human_parse_duration(const char *text, uint64_t *ret_ms)
{
	const char *unit;
	uint64_t value;
	int r = split_number(text, &value, &unit);

	if (r < 0)
		return r;
	r = scale(duration_units, array_len(duration_units), *unit ? unit : "s", value, &value);
	if (r < 0)
		return r;
	if (value > DURATION_MAX_MS)
		return -ERANGE;
	*ret_ms = value;
	return 0;
}

int human_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	const char *unit;
	uint64_t value;
	int r = split_number(text, &value, &unit);

	if (r < 0)
		return r;
	r = scale(size_units, array_len(size_units), unit, value, &value);
	if (r < 0)
		return r;
	*ret_bytes = value;
	return 0;
}

int human_parse_time(const char *text, int64_t *ret_wall_ms)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t fraction_ms = 0;

	if (!rest)
		return -EINVAL;
	if (*rest == '.') {
		int64_t place = 100;

		for (rest++; *rest >= '0' && *rest <= '9'; rest++, place /= 10)
			fraction_ms += (*rest - '0') * place;
	}
	if (strcmp(rest, "Z") != 0)
		return -EINVAL;
	*ret_wall_ms = (int64_t)timegm(&tm) * 1000 + fraction_ms;
	return 0;
}
