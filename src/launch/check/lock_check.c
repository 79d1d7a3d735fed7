/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/check/lock_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "Flask_SQLAlchemy[x]>=2" as "flask-sqlalchemy"; empty if it is no name, or too long a one. */
static void normalize(const char *text, size_t len, char name[LOCK_CHECK_NAME_MAX])
{
	size_t at = 0;

	for (size_t i = 0; i < len && at + 1 < LOCK_CHECK_NAME_MAX; i++) {
		char c = (char)tolower((unsigned char)text[i]);

		if (c == '_' || c == '.')
			c = '-';
		if (!isalnum((unsigned char)c) && c != '-')
			break;
		if (c != '-' || (at > 0 && name[at - 1] != '-'))
			name[at++] = c;
	}
	name[at] = '\0';
}

/* Whether a text in quotes is the name. */
static bool has_name(const char *lock, const char *name)
{
	for (const char *at = lock; (at = strchr(at, '"'));) {
		size_t len = strcspn(++at, "\"\n");
		char found[LOCK_CHECK_NAME_MAX];

		if (len < sizeof(found)) {
			normalize(at, len, found);
			if (strcmp(found, name) == 0)
				return true;
		}
		at += len + (at[len] == '"');
	}
	return false;
}

static bool begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* What a section of a file lists. */
enum section { NOTHING, ARRAY_OF_NAMES, NAMES_AS_KEYS };

static enum section section_of(const char *line)
{
	if (begins(line, "[project]"))
		return ARRAY_OF_NAMES;
	if (begins(line, "[packages]") || begins(line, "[dev-packages]") ||
		begins(line, "[tool.poetry.dependencies]") ||
		(begins(line, "[tool.poetry.group.") && strstr(line, ".dependencies]") &&
			strstr(line, ".dependencies]") < line + strcspn(line, "\n")))
		return NAMES_AS_KEYS;
	return NOTHING;
}

static bool is_missing(
	const char *lock, const char *text, size_t len, char name[LOCK_CHECK_NAME_MAX])
{
	normalize(text, len, name);
	return name[0] && strcmp(name, "python") != 0 && !has_name(lock, name);
}

/* The texts of an array, which may go on over lines: "dependencies = [". */
static bool array_lacks(const char *from, const char *lock, char name[LOCK_CHECK_NAME_MAX])
{
	char quote;

	for (const char *at = from; *at && *at != ']'; at++) {
		size_t len;

		if (*at == '#') {
			at += strcspn(at, "\n");
			if (!*at)
				return false;
		}
		if (*at != '"' && *at != '\'')
			continue;
		quote = *at++;
		for (len = 0; at[len] && at[len] != quote && at[len] != '\n'; len++)
			;
		if (is_missing(lock, at, len, name))
			return true;
		at += len;
		if (!*at)
			return false;
	}
	return false;
}

static bool manifest_lacks(const char *text, const char *lock, char name[LOCK_CHECK_NAME_MAX])
{
	enum section section = NOTHING;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t sign = strcspn(line, "=\n");

		if (*line == '[')
			section = section_of(line);
		else if (line[sign] != '=' || *line == '#')
			continue;
		else if (section == ARRAY_OF_NAMES && begins(line, "dependencies") &&
			 strspn(line + 12, " ") == sign - 12) {
			const char *array = line + sign + 1 + strspn(line + sign + 1, " ");

			if (*array == '[' && array_lacks(array + 1, lock, name))
				return true;
		} else if (section == NAMES_AS_KEYS &&
			   is_missing(lock, line + (*line == '"'), sign, name))
			return true;
	}
	return false;
}

bool lock_check_missing(
	const struct file_set *set, const struct app_part *part, char ret_name[LOCK_CHECK_NAME_MAX])
{
	static const char *const manifests[] = {"pyproject.toml", "Pipfile"};
	bool is_pipfile = part->lock && strcmp(part->lock, "Pipfile.lock") == 0;
	auto_free char *lock = part->lock ? file_set_read(set, part->dir, part->lock) : NULL;
	auto_free char *text = file_set_read(set, part->dir, manifests[is_pipfile]);

	return lock && text && manifest_lacks(text, lock, ret_name);
}
