/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process_announce.h"

#include "base/clock.h"
#include "core/engine/engine.h"
#include "core/process/process_state.h"

#define COMMAND_MAX 256 /* bytes of a command that an event has */

static json_t *describe(const struct process_record *record)
{
	char name[PROCESS_NAME_MAX], now[CLOCK_TEXT_LEN];
	bool is_cut;
	json_t *event;

	process_name_format(record->number, name);
	clock_format(clock_wall_ms(), now);
	event = json_pack("{s:s, s:s, s:o, s:b, s:b, s:s}", "sandbox", record->sandbox_id,
		"process", name, "argv", process_argv_shorten(record->argv, COMMAND_MAX, &is_cut),
		"background", record->is_background, "terminal", record->is_pty, "at", now);
	if (record->danger)
		json_object_set_new(event, "flags", danger_to_json(record->danger));
	if (record->ended_at_ms > 0)
		json_object_update_new(
			event, json_pack("{s:i, s:s, s:I}", "exit_code", record->exit_code,
				       "reason", end_reason_name(record->end.reason), "duration_ms",
				       (json_int_t)(record->duration_us / 1000)));
	return event;
}

void process_announce(struct process *process, const char *type)
{
	struct process_record record;
	auto_free char *text = NULL;
	json_t *event;

	process_read(process, &record);
	event = describe(&record);
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	process_record_fini(&record);
	if (text)
		sandbox_tell(process->sandbox, type, text);
}
