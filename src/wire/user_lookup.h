/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is meant by the user of an image: "name", "1000", and both with ":group", by the lines of its own
 * /etc/passwd and /etc/group. These are the sandbox's files: any bytes may be in them. The agent asks for the commands of a
 * sandbox, the daemon for the steps of a build, whose users an earlier step may have made.
 */
#pragma once

#include "base/mem.h"
#include "wire/agent.h"

#include <stdint.h>

#define USER_LOOKUP_ID_MAX 65534

struct user_lookup {
	uint32_t uid;
	uint32_t gid;
	char home[AGENT_PATH_MAX]; /* "" if nothing says it */
	uint32_t groups
		[AGENT_GROUPS_MAX]; /* that it is in besides: none if the text names its group */
	uint32_t group_count;
};

/*
 * Looks up a text ("" is root) in the texts of both files. A number needs no line, and then is the number of the
 * group too. 0, or which part is not there.
 */
enum agent_user_fault user_lookup_find(
	const char *text, const char *passwd, const char *group, struct user_lookup *ret_user);
