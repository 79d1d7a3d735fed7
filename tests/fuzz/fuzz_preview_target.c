/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a request by path: what is found is one preview, and the path in front of it begins the target. Or what
 * Referer says of a request that names none: the path in front is part of that.
 */
#include "api/preview/preview_target.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *target = mem_new(size + 1);
	const struct listener listener = {.host = "127.0.0.1", .port = 9091};
	struct proxy_visit visit = {.host = "localhost:9091", .target = "/main.js"};
	struct preview_target goal;
	struct slice prefix;

	if (size > 0)
		memcpy(target, data, size);
	if (preview_target_parse_path(target, &goal) == 0) {
		assert(id_is_valid(goal.id) || sandbox_name_is_valid(goal.id));
		assert(goal.prefix.at == target && goal.prefix.len <= strlen(target));
		assert(target[0] == '/' && target[1] != '/');
		assert(!memchr(target, '?', goal.prefix.len));
		assert(strchr("/?", target[goal.prefix.len]));
	}
	visit.referer = target;
	if (preview_target_find_stray("preview.localhost", &listener, &visit, &prefix) == 0) {
		assert(prefix.at > target && prefix.at + prefix.len <= target + strlen(target));
		assert(prefix.at[0] == '/' && prefix.at[1] != '/');
	}
	free(target);
	return 0;
}
