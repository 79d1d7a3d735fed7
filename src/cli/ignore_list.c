/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ignore_list.h"

#include "base/mem.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

/* Whether a pattern fits a name, part by part. */
static bool fits(const char *pattern, const char *name)
{
	size_t pattern_len = strcspn(pattern, "/"), name_len = strcspn(name, "/");
	auto_free char *part = NULL, *wanted = NULL;

	if (pattern_len == 2 && strncmp(pattern, "**", 2) == 0) {
		const char *rest = pattern + 2 + (pattern[2] == '/');

		for (const char *at = name;; at += name_len + 1) {
			name_len = strcspn(at, "/");
			if (*rest ? fits(rest, at) : !at[name_len])
				return true;
			if (!at[name_len])
				return false;
		}
	}
	wanted = mem_printf("%.*s", (int)pattern_len, pattern);
	part = mem_printf("%.*s", (int)name_len, name);
	if (fnmatch(wanted, part, 0) != 0)
		return false;
	if (!pattern[pattern_len] || !name[name_len])
		return !pattern[pattern_len] && !name[name_len];
	return fits(pattern + pattern_len + 1, name + name_len + 1);
}

/* The same, or whether it fits a directory above. */
static bool fits_at_or_above(const char *pattern, const char *name)
{
	auto_free char *head = mem_strdup(name);

	for (char *slash = head; slash; slash = strrchr(head, '/')) {
		if (slash != head)
			*slash = '\0';
		if (fits(pattern, head))
			return true;
	}
	return false;
}

/* The pattern of a line: without what it may begin and end with. Empty for a comment. */
static char *read_line(const char *line, size_t len, bool *ret_takes_in)
{
	*ret_takes_in = false;
	while (len > 0 && strchr(" \t\r/", line[len - 1]))
		len--;
	if (len == 0 || *line == '#')
		return mem_strdup("");
	if (*line == '!') {
		*ret_takes_in = true;
		line++;
		len--;
	}
	while (len > 0 && (*line == '/' || (len > 1 && strncmp(line, "./", 2) == 0))) {
		line++;
		len--;
	}
	return mem_printf("%.*s", (int)len, line);
}

bool ignore_list_has(const char *text, const char *name)
{
	bool has = false;

	for (const char *line = text; line && *line;) {
		size_t len = strcspn(line, "\n");
		bool takes_in;
		auto_free char *pattern = read_line(line, len, &takes_in);

		if (*pattern && fits_at_or_above(pattern, name))
			has = !takes_in;
		line += len + (line[len] == '\n');
	}
	return has;
}

bool ignore_list_takes_in(const char *text)
{
	return text && (*text == '!' || strstr(text, "\n!"));
}
