/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/requirements.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define FILES_MAX 32
#define PATH_LEN  512
#define TEXT_MAX  (4u * FILE_SET_TEXT_MAX)

/* The files that are read: of the list, those before `done` have been. */
struct reading {
	char paths[FILES_MAX][PATH_LEN];
	size_t count, done;
};

const char *requirements_path(const char *line, size_t *ret_len)
{
	static const char *const options[] = {"-r", "-c", "--requirement", "--constraint"};

	line += strspn(line, " \t");
	/* The longer ones are looked at last, since they do not begin like the others. */
	for (size_t i = 0; i < array_len(options); i++) {
		size_t len = strlen(options[i]);
		const char *path = line + len;

		if (strncmp(line, options[i], len) != 0)
			continue;
		if (options[i][1] == '-' && !strchr(" \t=", *path))
			continue;
		path += strspn(path, " \t=");
		*ret_len = strcspn(path, " \t\r\n#");
		return *ret_len > 0 ? path : NULL;
	}
	return NULL;
}

/* A path beside another as one of the set: without "." and ".."; false if it leads out, or is too long. */
static bool resolve(const char *from, const char *path, size_t len, char to[PATH_LEN])
{
	const char *slash = strrchr(from, '/');
	auto_free char *joined =
		mem_printf("%.*s%.*s", slash ? (int)(slash - from + 1) : 0, from, (int)len, path);
	char *state = NULL;
	size_t end = 0;

	if (len == 0 || path[0] == '/' || strlen(joined) >= PATH_LEN)
		return false;
	for (char *name = strtok_r(joined, "/", &state); name; name = strtok_r(NULL, "/", &state)) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			if (end == 0)
				return false;
			while (end > 0 && to[--end] != '/')
				;
			continue;
		}
		if (end > 0)
			to[end++] = '/';
		memcpy(to + end, name, strlen(name));
		end += strlen(name);
	}
	to[end] = '\0';
	return end > 0;
}

static void add_path(struct reading *reading, const char *path)
{
	for (size_t i = 0; i < reading->count; i++) {
		if (strcmp(reading->paths[i], path) == 0)
			return;
	}
	if (reading->count < FILES_MAX)
		snprintf(reading->paths[reading->count++], PATH_LEN, "%s", path);
}

static void follow(struct reading *reading, const char *from, const char *text)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char path[PATH_LEN];
		size_t len;
		const char *named = requirements_path(line, &len);

		if (named && resolve(from, named, len, path))
			add_path(reading, path);
	}
}

char *requirements_read(const struct file_set *set, const char *dir, const char *name)
{
	auto_free struct reading *reading = mem_new(sizeof(*reading));
	auto_free char *first = file_set_join(dir, name);
	struct buf all = BUF_INIT(TEXT_MAX);
	bool is_there = false;

	*reading = (struct reading){0};
	if (strlen(first) < PATH_LEN)
		add_path(reading, first);
	for (; reading->done < reading->count; reading->done++) {
		const char *path = reading->paths[reading->done];
		auto_free char *text = file_set_read(set, "", path);

		if (!text)
			continue;
		is_there = true;
		buf_append_str(&all, text);
		buf_append_str(&all, "\n");
		follow(reading, path, text);
	}
	if (!is_there) {
		buf_fini(&all);
		return NULL;
	}
	return buf_take_str(&all);
}
