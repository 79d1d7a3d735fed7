/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/start_body.h"

#include "api/api.h"
#include "api/env_body.h"
#include "api/process/command_body.h"
#include "core/process/environment.h"
#include "store/store_clock.h"

#define NAME_OF_LINE "main"

struct start_row {
	const char *name, *command, *cwd;
	const json_t *env;
};

static const char *check_name(const json_t *value)
{
	return model_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be letters, digits, . _ - with a letter or digit first";
}

const struct field start_body_rows[START_BODY_ROWS] = {
	{"name", FIELD_STRING, offsetof(struct start_row, name), 1, PROCESS_START_MAX - 1,
		FIELD_REQUIRED, "What it is called; each name once.", .check = check_name},
	{"command", FIELD_STRING, offsetof(struct start_row, command), 1, SPEC_START_COMMAND_MAX,
		FIELD_REQUIRED, "A line for /bin/sh."},
	{"cwd", FIELD_STRING, offsetof(struct start_row, cwd), 1, AGENT_PATH_MAX - 1, 0,
		"Working directory; /workspace if left out.", .check = command_body_check_cwd},
	{"env", FIELD_STRING_MAP, offsetof(struct start_row, env), 0, SPEC_START_ENV_MAX, 0,
		"Environment, on top of the sandbox's.", .check = env_body_check},
};

const char *start_body_check(const json_t *value)
{
	json_t *one, *other;
	size_t i, j;

	json_array_foreach((json_t *)value, i, one)
	{
		json_array_foreach((json_t *)value, j, other)
		{
			if (i != j && json_equal(json_object_get(one, "name"),
					      json_object_get(other, "name")))
				return "has a name twice";
		}
	}
	return NULL;
}

static struct start_spec read_command(const json_t *entry, struct text_pair env[])
{
	const json_t *map = json_object_get(entry, "env");

	return (struct start_spec){.name = json_string_value(json_object_get(entry, "name")),
		.command = json_string_value(json_object_get(entry, "command")),
		.cwd = json_string_value(json_object_get(entry, "cwd")),
		.env = {map ? env : NULL, fields_copy_map(map, env)}};
}

size_t start_body_decode(const json_t *value, struct start_body *ret_body)
{
	json_t *entry;
	size_t i;

	if (json_is_string(value)) {
		ret_body->commands[0] = (struct start_spec){
			.name = NAME_OF_LINE, .command = json_string_value(value)};
		return 1;
	}
	json_array_foreach((json_t *)value, i, entry) ret_body->commands[i] =
		read_command(entry, ret_body->env[i]);
	return json_array_size(value);
}

static json_t *stored_time(const struct sandbox *sandbox, int64_t ms)
{
	const struct store *store = engine_store(sandbox_engine(sandbox));

	return ms ? api_time_to_json(store_clock_to_wall(store, ms)) : json_null();
}

static void add_state(json_t *shown, struct sandbox *sandbox, const char *name)
{
	struct start_command_state state;
	char process[PROCESS_NAME_MAX];

	start_command_read(sandbox, name, &state);
	process_name_format(state.process, process);
	json_object_update_new(shown,
		json_pack("{s:s, s:o, s:I, s:s?, s:o, s:o, s:o, s:o}", "status",
			start_command_status_name(state.status), "process",
			state.process ? json_string(process) : json_null(), "restarts",
			(json_int_t)state.restarts, "last_error", start_command_error(&state),
			"next_try_at", stored_time(sandbox, state.next_try_at_ms), "last_ended_at",
			stored_time(sandbox, state.ended_at_ms), "last_exit_code",
			state.ended_at_ms ? json_integer(state.exit_code) : json_null(),
			"last_termination", termination_to_json(&state.end)));
}

json_t *start_body_encode(const json_t *start, struct sandbox *sandbox)
{
	json_t *list = json_array(), *spec;
	size_t i;

	json_array_foreach((json_t *)start, i, spec)
	{
		const char *name = json_string_value(json_object_get(spec, "name"));
		const char *cwd = json_string_value(json_object_get(spec, "cwd"));
		json_t *shown = json_pack("{s:s, s:s, s:s}", "name", name, "command",
			json_string_value(json_object_get(spec, "command")), "cwd",
			cwd ? cwd : ENVIRONMENT_CWD);

		if (sandbox)
			add_state(shown, sandbox, name);
		json_array_append_new(list, shown);
	}
	return list;
}
