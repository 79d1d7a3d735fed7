/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/process_body.h"

#include "api/api.h"

#include <stdio.h>

#define LISTED_ARGV_MAX 1024 /* bytes of a command in a list */

json_t *process_body_encode_end(const struct process_end *end)
{
	return json_pack("{s:i, s:f, s:o}", "exit_code", end->exit_code, "duration_ms",
		(double)end->duration_us / 1000, "termination", termination_to_json(&end->how));
}

struct process_end process_body_end(const struct process_record *record)
{
	return (struct process_end){.exit_code = record->exit_code,
		.duration_us = record->duration_us,
		.how = record->end};
}

/* The line that was asked for. */
static json_t *encode_command(const struct process_record *record, const json_t *argv)
{
	return record->is_line ? json_incref(json_array_get(argv, 2)) : json_null();
}

static json_t *encode_user(uint32_t uid)
{
	char text[16];

	if (uid == 0 || uid == 1000)
		return json_string(uid == 0 ? "root" : "sandbox");
	snprintf(text, sizeof(text), "%u", uid);
	return json_string(text);
}

/* Takes over the argv. */
static json_t *encode(
	const struct api *api, const struct process_record *record, json_t *argv, bool is_argv_cut)
{
	bool has_ended = record->ended_at_ms > 0;
	char name[PROCESS_NAME_MAX];

	process_name_format(record->number, name);
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:b, s:s, s:o, s:b, s:b, s:b, s:b, s:s, s:I, s:b, s:I, "
		"s:o, s:o, s:o,"
		" s:o, s:o, s:o, s:o, s:I, s:o}",
		"id", name, "pid", record->pid ? json_integer(record->pid) : json_null(), "command",
		encode_command(record, argv), "argv", argv, "command_truncated", is_argv_cut, "cwd",
		record->cwd, "user", encode_user(record->uid), "background", record->is_background,
		"keep_awake", record->keeps_awake, "pty", record->is_pty, "isolated",
		record->is_isolated, "status", has_ended ? "exited" : "running", "survivors",
		(json_int_t)record->survivors, "stdin_open", record->is_input_open && !has_ended,
		"output_bytes", (json_int_t)record->output_bytes, "timeout_ms",
		record->timeout_ms ? json_integer((json_int_t)record->timeout_ms) : json_null(),
		"started_at", api_stored_time_to_json(api, record->started_at_ms), "ended_at",
		api_stored_time_to_json(api, record->ended_at_ms), "exit_code",
		has_ended ? json_integer(record->exit_code) : json_null(), "duration_ms",
		has_ended ? json_real((double)record->duration_us / 1000) : json_null(),
		"termination", termination_to_json(&record->end), "start",
		record->start[0] ? json_string(record->start) : json_null(), "restarts",
		(json_int_t)record->restarts, "flags", danger_to_json(record->danger));
}

json_t *process_body_encode(const struct api *api, const struct process_record *record)
{
	return encode(api, record, json_incref(record->argv), record->is_argv_cut);
}

json_t *process_body_encode_short(const struct api *api, const struct process_record *record)
{
	bool is_cut;
	json_t *argv = process_argv_shorten(record->argv, LISTED_ARGV_MAX, &is_cut);

	return encode(api, record, argv, is_cut || record->is_argv_cut);
}
