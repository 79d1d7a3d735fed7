/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/subids.h"

#include "base/fd.h"
#include "base/number.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX   (1u << 20)
#define FIRST_LENT 100000 /* where useradd begins */

/* Takes "name:first:count" apart; whether it is that. The line is cut into pieces. */
static bool read_line(char *line, const char **ret_name, uint64_t *ret_first, uint64_t *ret_count)
{
	char *first = strchr(line, ':');
	char *count = first ? strchr(first + 1, ':') : NULL;

	if (!count)
		return false;
	*first++ = '\0';
	*count++ = '\0';
	*ret_name = line;
	return number_parse(first, 1, UINT32_MAX - 1, ret_first) == 0 &&
	       number_parse(count, 1, UINT32_MAX - *ret_first, ret_count) == 0;
}

static void add(struct subids *subids, uint64_t first, uint64_t count)
{
	if (subids->range_count == SUBIDS_RANGES_MAX || count == 0)
		return;
	subids->ranges[subids->range_count].first = (uint32_t)first;
	subids->ranges[subids->range_count++].count = (uint32_t)count;
	subids->total += count;
}

void subids_parse(
	const char *text, const char *name, uid_t uid, uint32_t unit, struct subids *ret_subids)
{
	struct subids subids = {.next_first = FIRST_LENT};
	auto_free char *copy = mem_strdup(text);
	char *rest = copy, *line;
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	while ((line = strsep(&rest, "\n"))) {
		uint64_t first, count;
		const char *who;

		if (!read_line(line, &who, &first, &count))
			continue;
		if (first + count > subids.next_first)
			subids.next_first = (uint32_t)(first + count);
		if (strcmp(who, name) == 0 || strcmp(who, number) == 0)
			add(&subids, first, count - count % unit);
	}
	*ret_subids = subids;
}

void subids_read(
	const char *path, const char *name, uid_t uid, uint32_t unit, struct subids *ret_subids)
{
	auto_free char *text = mem_new(FILE_MAX);

	if (fd_read_file(AT_FDCWD, path, text, FILE_MAX) < 0)
		text[0] = '\0';
	subids_parse(text, name, uid, unit, ret_subids);
}
