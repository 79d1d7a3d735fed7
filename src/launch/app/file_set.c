/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/file_set.h"

#include <string.h>

void file_set_fini(struct file_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->paths[i]);
	free(set->paths);
	if (set->release)
		set->release(set->arg);
	*set = (struct file_set){0};
}

bool file_set_add(struct file_set *set, const char *path)
{
	if (set->count >= FILE_SET_PATHS_MAX)
		return false;
	if (!set->paths)
		set->paths = mem_new(FILE_SET_PATHS_MAX * sizeof(*set->paths));
	set->paths[set->count++] = mem_strdup(path);
	set->has_environment |= strstr(path, "/pyvenv.cfg") != NULL;
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void file_set_sort(struct file_set *set)
{
	if (set->count > 0)
		qsort(set->paths, set->count, sizeof(*set->paths), compare);
}

void file_set_keep(
	struct file_set *set, bool (*keeps)(const struct file_set *set, const char *path))
{
	auto_free bool *kept = mem_new(set->count * sizeof(*kept) + 1);
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		kept[i] = keeps(set, set->paths[i]);
	for (size_t i = 0; i < set->count; i++) {
		if (kept[i])
			set->paths[count++] = set->paths[i];
		else
			free(set->paths[i]);
	}
	set->count = count;
}

char *file_set_join(const char *dir, const char *name)
{
	return dir[0] ? mem_printf("%s/%s", dir, name) : mem_strdup(name);
}

static bool has_path(const struct file_set *set, const char *path)
{
	return set->count > 0 &&
	       bsearch(&path, set->paths, set->count, sizeof(*set->paths), compare);
}

bool file_set_has(const struct file_set *set, const char *dir, const char *name)
{
	auto_free char *path = file_set_join(dir, name);

	return has_path(set, path);
}

bool file_set_has_directory(const struct file_set *set, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 0)
		return set->count > 0;
	for (size_t i = 0; i < set->count; i++) {
		if (strncmp(set->paths[i], dir, len) == 0 && set->paths[i][len] == '/')
			return true;
	}
	return false;
}

char *file_set_read(const struct file_set *set, const char *dir, const char *name)
{
	auto_free char *path = file_set_join(dir, name);

	return has_path(set, path) ? set->read(set->arg, path) : NULL;
}

json_t *file_set_read_json(const struct file_set *set, const char *dir, const char *name)
{
	auto_free char *text = file_set_read(set, dir, name);
	json_t *value = text ? json_loads(text, 0, NULL) : NULL;

	if (value && !json_is_object(value)) {
		json_decref(value);
		return NULL;
	}
	return value;
}

unsigned file_set_line(const char *text, const char *at)
{
	unsigned line = 1;

	for (const char *c = text; c < at && *c; c++)
		line += *c == '\n';
	return line;
}
