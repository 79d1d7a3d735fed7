/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process_body.h"

#include "api/api.h"
#include "model/system_call.h"

#include <stdio.h>

static json_t *encode_denied(const struct termination *termination)
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

json_t *process_body_encode_termination(const struct termination *termination)
{
	if (termination->reason == END_NONE)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:f, s:I, s:o, s:o}", "reason",
		end_reason_name(termination->reason), "signal",
		api_signal_to_json(termination->signal), "detail",
		termination->detail[0] ? json_string(termination->detail) : json_null(), "cpu_ms",
		(double)termination->cpu_us / 1000, "peak_memory_bytes",
		(json_int_t)termination->peak_memory_bytes, "denied", encode_denied(termination),
		"profile",
		termination->profile[0] ? json_string(termination->profile) : json_null());
}

json_t *process_body_encode_end(const struct process_end *end)
{
	return json_pack("{s:i, s:f, s:o}", "exit_code", end->exit_code, "duration_ms",
		(double)end->duration_us / 1000, "termination",
		process_body_encode_termination(&end->how));
}

struct process_end process_body_end(const struct process_record *record)
{
	return (struct process_end){.exit_code = record->exit_code,
		.duration_us = record->duration_us,
		.how = record->end};
}

/* The line that was asked for. */
static json_t *encode_command(const struct process_record *record)
{
	return record->is_line ? json_incref(json_array_get(record->argv, 2)) : json_null();
}

static json_t *encode_user(uint32_t uid)
{
	char text[16];

	if (uid == 0 || uid == 1000)
		return json_string(uid == 0 ? "root" : "sandbox");
	snprintf(text, sizeof(text), "%u", uid);
	return json_string(text);
}

json_t *process_body_encode(const struct process_record *record)
{
	bool has_ended = record->ended_at_ms > 0;
	char name[PROCESS_NAME_MAX];

	process_name_format(record->number, name);
	return json_pack(
		"{s:s, s:o, s:o, s:O, s:s, s:o, s:b, s:b, s:b, s:s, s:I, s:b, s:I, s:o, s:o, s:o,"
		" s:o, s:o, s:o, s:o, s:I}",
		"id", name, "pid", record->pid ? json_integer(record->pid) : json_null(), "command",
		encode_command(record), "argv", record->argv, "cwd", record->cwd, "user",
		encode_user(record->uid), "background", record->is_background, "pty",
		record->is_pty, "isolated", record->is_isolated, "status",
		has_ended ? "exited" : "running", "survivors", (json_int_t)record->survivors,
		"stdin_open", record->is_input_open && !has_ended, "output_bytes",
		(json_int_t)record->output_bytes, "timeout_ms",
		record->timeout_ms ? json_integer((json_int_t)record->timeout_ms) : json_null(),
		"started_at", api_time_to_json(record->started_at_ms), "ended_at",
		api_time_to_json(record->ended_at_ms), "exit_code",
		has_ended ? json_integer(record->exit_code) : json_null(), "duration_ms",
		has_ended ? json_real((double)record->duration_us / 1000) : json_null(),
		"termination", process_body_encode_termination(&record->end), "start",
		record->start[0] ? json_string(record->start) : json_null(), "restarts",
		(json_int_t)record->restarts);
}
