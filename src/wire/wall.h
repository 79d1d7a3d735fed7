/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walls around a sandbox, by their names in `walls` of a sandbox, and in the setting that
 * allows some of them to be missing.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum wall {
	WALL_AGENT,
	WALL_CAPABILITIES,
	WALL_CORE_DUMPS,
	WALL_CPU,
	WALL_DISK,
	WALL_FILESYSTEM,
	WALL_KEYRING,
	WALL_MASKED_PATHS,
	WALL_MEMORY,
	WALL_NAMESPACES,
	WALL_NETWORK,
	WALL_NO_NEW_PRIVS,
	WALL_PIDS,
	WALL_SECCOMP,
	WALL_USER_NAMESPACE,
	WALL_COUNT,
};

#define WALL_HOW_MAX 40

/* What each wall is made of, in a word or two for people; "" where it is missing. */
struct walls {
	char how[WALL_COUNT][WALL_HOW_MAX];
};

const char *wall_name(enum wall wall);

/* "memory,cpu" as bits (1 << enum wall). Refuses names of walls that no sandbox can be built without. */
int wall_parse_list(const char *text, uint32_t *ret_walls, struct err *err) must_check;
