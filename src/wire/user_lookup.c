/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/user_lookup.h"

#include "base/number.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 7 /* of a line of passwd, the longer of both */

struct field {
	const char *text;
	size_t len;
};

/* Cuts a line at its colons; what is not there is empty. */
static void cut(const char *line, size_t len, struct field fields[FIELDS_MAX])
{
	const char *end = line + len;

	for (size_t i = 0; i < FIELDS_MAX; i++) {
		const char *colon = memchr(line, ':', (size_t)(end - line));
		const char *stop = colon ? colon : end;

		fields[i] = (struct field){line, (size_t)(stop - line)};
		line = colon ? colon + 1 : end;
	}
}

static bool equals(const struct field *field, const char *text)
{
	return strlen(text) == field->len && memcmp(field->text, text, field->len) == 0;
}

static bool read_id(const struct field *field, uint32_t *ret_id)
{
	char digits[12];
	uint64_t id;

	if (field->len >= sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)field->len, field->text);
	if (number_parse(digits, 0, USER_LOOKUP_ID_MAX, &id) < 0)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

/* The first line whose name (or, if by_number, whose third field) is that text. */
static bool find_line(
	const char *lines, const char *text, bool by_number, struct field ret_fields[FIELDS_MAX])
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		cut(lines, len, ret_fields);
		if (equals(&ret_fields[by_number ? 2 : 0], text))
			return true;
		lines += len + (lines[len] == '\n');
	}
	return false;
}

static bool is_number(const char *text, uint32_t *ret_id)
{
	return read_id(&(struct field){text, strlen(text)}, ret_id);
}

/* Whether a name is among those between commas. */
static bool is_member(const struct field *members, const struct field *name)
{
	const char *at = members->text, *end = at + members->len;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - at) == name->len && memcmp(at, name->text, name->len) == 0)
			return true;
		at = stop + 1;
	}
	return false;
}

/* The groups whose lines name the user. */
static void find_groups(const struct field *name, const char *lines, struct user_lookup *user)
{
	struct field fields[FIELDS_MAX];

	while (*lines && user->group_count < AGENT_GROUPS_MAX) {
		size_t len = strcspn(lines, "\n");
		uint32_t gid;

		cut(lines, len, fields);
		if (name->len > 0 && is_member(&fields[3], name) && read_id(&fields[2], &gid) &&
			gid != user->gid)
			user->groups[user->group_count++] = gid;
		lines += len + (lines[len] == '\n');
	}
}

/* *ret_name is what the user's line says; empty if there is none. */
static bool find_user(
	const char *name, const char *passwd, struct user_lookup *user, struct field *ret_name)
{
	struct field fields[FIELDS_MAX];
	bool has_number = is_number(name, &user->uid);

	user->gid = user->uid;
	if (find_line(passwd, name, false, fields) ||
		(has_number && find_line(passwd, name, true, fields))) {
		uint32_t uid, gid;

		if (read_id(&fields[2], &uid) && read_id(&fields[3], &gid)) {
			user->uid = uid;
			user->gid = gid;
			*ret_name = fields[0];
			snprintf(user->home, sizeof(user->home), "%.*s", (int)fields[5].len,
				fields[5].text);
			return true;
		}
	}
	/* Root is there without a line. */
	return has_number || strcmp(name, "root") == 0;
}

static bool find_group(const char *name, const char *group, uint32_t *ret_gid)
{
	struct field fields[FIELDS_MAX];

	if (find_line(group, name, false, fields) && read_id(&fields[2], ret_gid))
		return true;
	return is_number(name, ret_gid);
}

enum agent_user_fault user_lookup_find(
	const char *text, const char *passwd, const char *group, struct user_lookup *ret_user)
{
	struct user_lookup user = {0};
	size_t len = strcspn(text, ":");
	char *name = mem_printf("%.*s", (int)len, text);
	struct field own = {"", 0};
	bool is_found = find_user(name[0] ? name : "root", passwd, &user, &own);

	free(name);
	if (!is_found)
		return AGENT_USER_UNKNOWN;
	if (text[len] != ':' || !text[len + 1])
		find_groups(&own, group, &user);
	else if (!find_group(text + len + 1, group, &user.gid))
		return AGENT_GROUP_UNKNOWN;
	if (user.home[0] != '/')
		user.home[0] = '\0';
	*ret_user = user;
	return AGENT_USER_FOUND;
}
