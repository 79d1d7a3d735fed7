/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/made_files.h"

#include <stdio.h>
#include <string.h>

static const char *const made_directories[] = {
	"node_modules", ".venv", "venv", "__pycache__", ".next", ".nuxt"};

size_t made_files_named(const char *path)
{
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");

		for (size_t i = 0; i < array_len(made_directories) && at[len] == '/'; i++) {
			if (strlen(made_directories[i]) == len &&
				strncmp(made_directories[i], at, len) == 0)
				return (size_t)(at - path) + len;
		}
		at += len + (at[len] == '/');
	}
	return 0;
}

/* The length of the first directory of a path that is a virtual environment; 0: none. */
static size_t environment_length(const struct file_set *set, const char *path)
{
	for (const char *at = strchr(path, '/'); at && set->has_environment;
		at = strchr(at + 1, '/')) {
		auto_free char *dir = mem_printf("%.*s", (int)(at - path), path);

		if (file_set_has(set, dir, "pyvenv.cfg"))
			return (size_t)(at - path);
	}
	return 0;
}

size_t made_files_length(const struct file_set *set, const char *path)
{
	size_t len = made_files_named(path);

	return len > 0 ? len : environment_length(set, path);
}
