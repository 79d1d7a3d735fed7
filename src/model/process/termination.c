/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process/termination.h"

#include "model/process/system_call.h"

#include <errno.h>
#include <stdio.h>
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

/* "SIGKILL", or null for 0. */
static json_t *signal_to_json(int signal_number)
{
	const char *name = signal_number ? sigabbrev_np(signal_number) : NULL;
	char text[24];

	if (!signal_number)
		return json_null();
	if (name)
		snprintf(text, sizeof(text), "SIG%s", name);
	else
		snprintf(text, sizeof(text), "%d", signal_number);
	return json_string(text);
}

static json_t *denied_to_json(const struct termination *termination)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < termination->denied_count; i++) {
		const struct denied_call *call = &termination->denied[i];
		char spare[SYSTEM_CALL_DIGITS];

		json_array_append_new(list,
			json_pack("{s:s, s:I}", "syscall", system_call_name(call->number, spare),
				"count", (json_int_t)call->times));
	}
	return list;
}

json_t *termination_to_json(const struct termination *termination)
{
	if (termination->reason == END_NONE)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:f, s:I, s:o, s:o}", "reason",
		end_reason_name(termination->reason), "signal", signal_to_json(termination->signal),
		"detail", termination->detail[0] ? json_string(termination->detail) : json_null(),
		"cpu_ms", (double)termination->cpu_us / 1000, "peak_memory_bytes",
		(json_int_t)termination->peak_memory_bytes, "denied", denied_to_json(termination),
		"profile",
		termination->profile[0] ? json_string(termination->profile) : json_null());
}
