/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/paths.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* Copies the parts of text, joined by single slashes. 0, or -errno. */
static int join_parts(const char *text, char *out, size_t size)
{
	size_t len = 0;

	while (*text) {
		size_t part = strcspn(text, "/");

		if (part == 2 && text[0] == '.' && text[1] == '.')
			return -EPERM;
		if (part > NAME_MAX)
			return -ENAMETOOLONG;
		if (part > 0 && !(part == 1 && text[0] == '.')) {
			if (len + part + 2 > size)
				return -ENAMETOOLONG;
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, text, part);
			len += part;
		}
		text += part;
		text += strspn(text, "/");
	}
	out[len] = '\0';
	return 0;
}

static int describe(int r, const char *text, struct err *err)
{
	if (r == -EPERM)
		return err_explain(err, ERR_INVALID, "invalid_path", "write it without ..",
			"the path %.200s has a part ..", text);
	return err_explain(err, ERR_INVALID, "path_too_long", NULL,
		"a path may have %d bytes, and each part of it %d", AGENT_PATH_MAX - 1, NAME_MAX);
}

int paths_clean(const char *text, char path[AGENT_PATH_MAX], struct err *err)
{
	int r;

	if (text[0] != '/')
		return err_explain(err, ERR_INVALID, "invalid_path", "begin it with a slash",
			"a path must be absolute");
	path[0] = '/';
	r = join_parts(text, path + 1, AGENT_PATH_MAX - 1);
	return r < 0 ? describe(r, text, err) : 0;
}

int paths_clean_entry(const char *text, char name[AGENT_PATH_MAX], struct err *err)
{
	int r;

	if (text[0] == '/')
		return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"the archive has an entry with an absolute name: %.200s", text);
	r = join_parts(text, name, AGENT_PATH_MAX);
	if (r == -EPERM)
		return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"the archive has an entry that leaves it: %.200s", text);
	return r < 0 ? describe(r, text, err) : 0;
}
