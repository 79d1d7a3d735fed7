/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a request by path: what is found is one preview, and the path in front of it begins the target. */
#include "api/preview_goal.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *target = mem_new(size + 1);
	struct preview_goal goal;

	if (size > 0)
		memcpy(target, data, size);
	if (preview_goal_parse_path(target, &goal) == 0) {
		assert(id_is_valid(goal.id));
		assert(goal.prefix.at == target && goal.prefix.len <= strlen(target));
		assert(target[0] == '/' && target[1] != '/');
		assert(!memchr(target, '?', goal.prefix.len));
		assert(strchr("/?", target[goal.prefix.len]));
	}
	free(target);
	return 0;
}
