/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subids.h"

#include "base/fd.h"
#include "base/number.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX     (1u << 20)
#define FIRST_LENT   100000 /* where useradd begins, */
#define LENT_AT_ONCE 65536  /* and how many it lends */

/* Parses "name:first:count"; whether it has that form. Cuts the line into pieces. */
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
	count -= count % SUBIDS_SANDBOX;
	if (subids->range_count == SUBIDS_RANGES_MAX || count == 0)
		return;
	subids->ranges[subids->range_count].first = (uint32_t)first;
	subids->ranges[subids->range_count++].count = (uint32_t)count;
	subids->total += count;
}

void subids_parse(const char *text, const char *name, uid_t uid, struct subids *ret_subids)
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
			add(&subids, first, count);
	}
	*ret_subids = subids;
}

void subids_read(
	int root_fd, enum subids_kind kind, const char *name, uid_t uid, struct subids *ret_subids)
{
	static const char *const files[SUBIDS_KINDS] = {"etc/subuid", "etc/subgid"};
	auto_free char *text = mem_new(FILE_MAX);

	if (fd_read_file(root_fd, files[kind], text, FILE_MAX) < 0)
		text[0] = '\0';
	subids_parse(text, name, uid, ret_subids);
}

bool subids_suffice(int root_fd, const char *name, uid_t uid, char remedy[SUBIDS_REMEDY_MAX])
{
	struct subids uids, gids;

	subids_read(root_fd, SUBIDS_UID, name, uid, &uids);
	subids_read(root_fd, SUBIDS_GID, name, uid, &gids);
	if (uids.total > 0 && gids.total > 0)
		return true;
	snprintf(remedy, SUBIDS_REMEDY_MAX,
		"sudo usermod --add-subuids %u-%u --add-subgids %u-%u %s", uids.next_first,
		uids.next_first + LENT_AT_ONCE - 1, gids.next_first,
		gids.next_first + LENT_AT_ONCE - 1, name);
	return false;
}
