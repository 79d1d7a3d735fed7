/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch of files says: changes, one behind the other, as they come over a channel. */
#include "core/files/file_changes.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
	assert(strlen(path) < AGENT_PATH_MAX && path[0] != '/');
	assert(strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size > 0) {
		struct file_changes_change change;
		uint8_t *copy = mem_new(size); /* so that a read past its end is seen */
		int n;

		memcpy(copy, data, size);
		n = file_changes_parse(copy, size, &change);
		free(copy);
		assert(n == 0 || n == -EPROTO || (n >= 10 && (size_t)n <= size));
		if (n <= 0)
			break;
		assert(change.what >= AGENT_CREATED && change.what <= AGENT_CHANGE_GONE);
		assert(change.kind <= AGENT_FILE_OTHER);
		check_path(change.path);
		check_path(change.to);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}
