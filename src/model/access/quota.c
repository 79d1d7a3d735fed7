/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/quota.h"

#include "base/format.h"
#include "base/number.h"
#include "model/size.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum unit { COUNT, CORES, BYTES };

static const struct {
	const char *name;
	enum unit unit;
} kinds[QUOTA_KIND_COUNT] = {
	[QUOTA_SANDBOXES] = {"sandboxes", COUNT},
	[QUOTA_RUNNING] = {"running", COUNT},
	[QUOTA_WORKSPACES] = {"workspaces", COUNT},
	[QUOTA_CPU] = {"cpu", CORES},
	[QUOTA_MEMORY] = {"memory", BYTES},
	[QUOTA_DISK] = {"disk", BYTES},
	[QUOTA_IMAGES] = {"images", BYTES},
	[QUOTA_PROJECTS] = {"projects", BYTES},
	[QUOTA_CREATES] = {"creates_per_minute", COUNT},
};

const char *quota_name(enum quota_kind kind)
{
	return kinds[kind].name;
}

int quota_find(const char *name, enum quota_kind *ret_kind)
{
	for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++) {
		if (strcmp(kinds[kind].name, name) == 0) {
			*ret_kind = (enum quota_kind)kind;
			return 0;
		}
	}
	return -EINVAL;
}

void quota_format(enum quota_kind kind, uint64_t amount, char text[QUOTA_TEXT_LEN])
{
	switch (kinds[kind].unit) {
	case COUNT:
		snprintf(text, QUOTA_TEXT_LEN, "%llu", (unsigned long long)amount);
		break;
	case CORES:
		snprintf(text, QUOTA_TEXT_LEN, "%g", (double)amount / 1000);
		break;
	case BYTES:
		size_format(amount, text);
		break;
	}
}

void quota_describe(enum quota_kind kind, uint64_t amount, char text[QUOTA_TEXT_LEN])
{
	if (kinds[kind].unit == BYTES)
		format_size(amount, text);
	else
		quota_format(kind, amount, text);
}

static int parse_cores(const char *text, uint64_t *ret_millis)
{
	double cores;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	cores = strtod(text, &end);
	if (*end || !(cores <= 1e9))
		return -EINVAL;
	*ret_millis = (uint64_t)llround(cores * 1000);
	return 0;
}

int quota_parse_amount(enum quota_kind kind, const char *text, uint64_t *ret_amount)
{
	uint64_t amount = 0;
	int r = -EINVAL;

	switch (kinds[kind].unit) {
	case COUNT:
		r = number_parse(text, 0, INT32_MAX, &amount);
		break;
	case CORES:
		r = parse_cores(text, &amount);
		break;
	case BYTES:
		r = size_parse(text, &amount);
		break;
	}
	if (r < 0 || amount > INT64_MAX)
		return -EINVAL;
	*ret_amount = amount;
	return 0;
}

void quota_clear(struct quota *quota)
{
	for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++)
		quota->limits[kind] = QUOTA_UNSET;
	quota->danger = QUOTA_UNSET;
}

static int parse_danger(const char *text, struct quota *quota)
{
	enum danger_policy policy;

	if (quota->danger != QUOTA_UNSET || danger_policy_parse(text, &policy) < 0)
		return -EINVAL;
	quota->danger = policy;
	return 0;
}

static int parse_one(char *text, struct quota *quota)
{
	char *equals = strchr(text, '=');
	enum quota_kind kind;
	uint64_t amount;

	if (!equals)
		return -EINVAL;
	*equals = '\0';
	if (strcmp(text, "dangerous_commands") == 0)
		return parse_danger(equals + 1, quota);
	if (quota_find(text, &kind) < 0 || quota_parse_amount(kind, equals + 1, &amount) < 0 ||
		quota->limits[kind] != QUOTA_UNSET)
		return -EINVAL;
	quota->limits[kind] = (int64_t)amount;
	return 0;
}

int quota_parse(const char *text, struct quota *ret_quota)
{
	auto_free char *copy = mem_strdup(text);
	char *rest = copy, *part;
	struct quota quota;
	int r = 0;

	quota_clear(&quota);
	while (r == 0 && text[0] && (part = strsep(&rest, ",")))
		r = parse_one(part, &quota);
	if (r == 0)
		*ret_quota = quota;
	return r;
}

struct quota quota_over(const struct quota *own, const struct quota *defaults)
{
	struct quota both;

	for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++) {
		int64_t limit = own->limits[kind];

		if (limit == QUOTA_UNSET)
			limit = defaults->limits[kind];
		both.limits[kind] = limit == QUOTA_UNSET ? QUOTA_UNLIMITED : limit;
	}
	both.danger = own->danger == QUOTA_UNSET ? defaults->danger : own->danger;
	if (both.danger == QUOTA_UNSET)
		both.danger = DANGER_FLAG;
	return both;
}

bool quota_limits_anything(const struct quota *quota)
{
	for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++) {
		if (quota->limits[kind] >= 0)
			return true;
	}
	return false;
}
