/* SPDX-License-Identifier: Apache-2.0 */
#include "model/termination.h"

#include <errno.h>
#include <string.h>

static const char *const reason_names[END_REASON_COUNT] = {
	[END_NONE] = "",
	[END_EXITED] = "exited",
	[END_SIGNAL] = "signal",
	[END_OOM] = "oom",
	[END_TIMEOUT] = "timeout",
	[END_PIDS_LIMIT] = "pids_limit",
	[END_DISK_FULL] = "disk_full",
	[END_KILLED] = "killed",
	[END_IDLE] = "idle",
	[END_LIFETIME] = "lifetime",
	[END_MEMORY_PRESSURE] = "memory_pressure",
	[END_AGENT_LOST] = "agent_lost",
	[END_OPERATOR] = "operator",
};

const char *end_reason_name(enum end_reason reason)
{
	return reason_names[reason];
}

int end_reason_parse(const char *name, enum end_reason *ret_reason)
{
	for (int i = 0; i < END_REASON_COUNT; i++) {
		if (strcmp(reason_names[i], name) == 0) {
			*ret_reason = (enum end_reason)i;
			return 0;
		}
	}
	return -EINVAL;
}
