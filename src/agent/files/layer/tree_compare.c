/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/layer/tree_compare.h"

#include "agent/files/path.h"
#include "base/fd.h"
#include "base/path_order.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

/* No link of any layer leads out of it. */
static int open_directory(int tree, const char *path)
{
	return path_open(tree, path[0] ? path : ".", O_RDONLY | O_DIRECTORY,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static bool exists(int dir, const char *name)
{
	struct stat stat;

	return dir >= 0 && fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
}

int tree_compare_find(const struct tree_compare *compare, const char *path, struct stat *ret_stat)
{
	auto_fd int fd = path_open(compare->below, path[0] ? path : ".", O_PATH | O_NOFOLLOW,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	/* With RESOLVE_NO_SYMLINKS a link in the last place is refused too, unless O_PATH asks for
	 * the link itself. A parent that is a link or a file: there is no such path. */
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	return fstat(fd, ret_stat) < 0 ? -errno : 1;
}

/* --- what a directory hides --- */

static void drop_level(struct tree_compare *compare)
{
	struct tree_compare_level *level = &compare->levels[--compare->depth];

	for (size_t i = 0; i < level->count; i++)
		free(level->names[i]);
	compare->held -= level->count;
	free(level->names);
	free(level->path);
}

void tree_compare_fini(struct tree_compare *compare)
{
	while (compare->depth > 0)
		drop_level(compare);
	free(compare->levels);
	compare->levels = NULL;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(
	struct tree_compare *compare, struct tree_compare_level *level, const char *name)
{
	if (compare->held == TREE_COMPARE_NAMES_MAX)
		return -E2BIG;
	if ((level->count & (level->count - 1)) == 0) {
		level->names = realloc(level->names,
			(level->count ? 2 * level->count : 1) * sizeof(*level->names));
		if (!level->names)
			abort();
	}
	level->names[level->count++] = mem_strdup(name);
	compare->held++;
	return 0;
}

/* A directory hides either all names that are below alone, or none of them: the first one tells. */
static int collect(
	struct tree_compare *compare, DIR *below, int upper, int merged, const char *path)
{
	struct tree_compare_level *level = &compare->levels[compare->depth - 1];
	const struct dirent *entry;

	level->path = mem_strdup(path);
	while ((entry = readdir(below))) {
		int r;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			exists(upper, entry->d_name))
			continue;
		if (exists(merged, entry->d_name))
			return 0;
		r = add_name(compare, level, entry->d_name);
		if (r < 0)
			return r;
	}
	if (level->count > 0)
		qsort(level->names, level->count, sizeof(*level->names), by_bytes);
	return 0;
}

int tree_compare_enter(struct tree_compare *compare, const char *path)
{
	auto_fd int upper = open_directory(compare->upper, path);
	auto_fd int merged = open_directory(compare->merged, path);
	int fd = open_directory(compare->below, path), r;
	DIR *below = fd < 0 ? NULL : fdopendir(fd);

	if (!below) {
		fd_close(fd);
		return 0; /* it was a directory just now: the layer changes */
	}
	compare->levels = realloc(compare->levels, (compare->depth + 1) * sizeof(*compare->levels));
	if (!compare->levels)
		abort();
	compare->levels[compare->depth++] = (struct tree_compare_level){0};
	r = collect(compare, below, upper, merged, path);
	closedir(below);
	if (r < 0 || compare->levels[compare->depth - 1].count == 0)
		drop_level(compare);
	return r;
}

bool tree_compare_next(
	struct tree_compare *compare, const char *before, char *ret_path, size_t size)
{
	while (compare->depth > 0) {
		struct tree_compare_level *level = &compare->levels[compare->depth - 1];

		if (level->next < level->count) {
			snprintf(ret_path, size, "%s%s%s", level->path, level->path[0] ? "/" : "",
				level->names[level->next]);
			if (before && path_order(ret_path, before) > 0)
				return false;
			level->next++;
			return true;
		}
		drop_level(compare);
	}
	return false;
}
