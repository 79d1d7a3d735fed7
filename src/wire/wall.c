/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wall.h"

#include <string.h>

/* Whether a wall may be missing: a host can lack it while a sandbox can still be built. */
static const struct {
	const char *name;
	bool may_be_missing;
} rows[WALL_COUNT] = {
	[WALL_AGENT] = {"agent", false},
	[WALL_CAPABILITIES] = {"capabilities", false},
	[WALL_CORE_DUMPS] = {"core_dumps", true},
	[WALL_CPU] = {"cpu", true},
	[WALL_DISK] = {"disk", true},
	[WALL_FILESYSTEM] = {"filesystem", false},
	[WALL_KEYRING] = {"keyring", true},
	[WALL_MASKED_PATHS] = {"masked_paths", false},
	[WALL_MEMORY] = {"memory", true},
	[WALL_NAMESPACES] = {"namespaces", false},
	[WALL_NETWORK] = {"network", false},
	[WALL_NO_NEW_PRIVS] = {"no_new_privs", false},
	[WALL_PIDS] = {"pids", true},
	[WALL_SECCOMP] = {"seccomp", true},
	[WALL_USER_NAMESPACE] = {"user_namespace", false},
};

const char *wall_name(enum wall wall)
{
	return rows[wall].name;
}

static int find(const char *name, size_t len)
{
	for (int i = 0; i < WALL_COUNT; i++) {
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return i;
	}
	return -1;
}

int wall_parse_list(const char *text, uint32_t *ret_walls, struct err *err)
{
	uint32_t walls = 0;

	while (*text) {
		size_t len = strcspn(text, ",");
		int wall = find(text, len);

		if (wall < 0)
			return err_explain(err, ERR_INVALID, "unknown_wall",
				"core_dumps, cpu, disk, keyring, memory, pids and seccomp may be "
				"missing",
				"there is no wall \"%.*s\"", (int)len, text);
		if (!rows[wall].may_be_missing)
			return err_explain(err, ERR_INVALID, "wall_needed", NULL,
				"no sandbox can be built without the wall %s", rows[wall].name);
		walls |= 1u << wall;
		text += len + (text[len] == ',');
	}
	*ret_walls = walls;
	return 0;
}
