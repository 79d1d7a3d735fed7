/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of clients, and names of entries in archives: two of them, with a NUL between. */
#include "core/files/paths.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Plain: no empty part, no "." or "..", none too long. */
static void assert_plain(const char *relative)
{
	while (*relative) {
		size_t part = strcspn(relative, "/");

		assert(part > 0 && part <= NAME_MAX);
		assert(!(part == 1 && relative[0] == '.'));
		assert(!(part == 2 && relative[0] == '.' && relative[1] == '.'));
		relative += part;
		if (*relative) {
			relative++;
			assert(*relative); /* no slash at the end */
		}
	}
}

static void check_path(const char *text)
{
	char path[AGENT_PATH_MAX], again[AGENT_PATH_MAX];
	struct err err = {0};
	int r = paths_clean(text, path, &err);

	if (r < 0) {
		assert(err.kind == ERR_INVALID && err.message[0]);
		return;
	}
	assert(path[0] == '/' && strlen(path) < AGENT_PATH_MAX);
	assert_plain(path + 1);
	assert(paths_clean(path, again, &err) == 0 && strcmp(path, again) == 0);
}

static void check_entry(const char *text)
{
	char name[AGENT_PATH_MAX], again[AGENT_PATH_MAX];
	struct err err = {0};
	int r = paths_clean_entry(text, name, &err);

	if (r < 0) {
		assert(err.kind == ERR_INVALID && err.message[0]);
		return;
	}
	assert(name[0] != '/' && strlen(name) < AGENT_PATH_MAX);
	assert_plain(name);
	assert(paths_clean_entry(name, again, &err) == 0 && strcmp(name, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_new(size + 2);
	char *second;

	if (size > 0)
		memcpy(text, data, size);
	second = text + strlen(text);
	if (second < text + size)
		second++;
	check_path(text);
	check_path(second);
	check_entry(text);
	check_entry(second);
	free(text);
	return 0;
}
