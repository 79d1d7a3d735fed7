/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages that start an app. Its processes are start commands of the sandbox, so they come back when it wakes. A part
 * that does not come up is taken out again: what failed is not tried for ever.
 */
#include "base/clock.h"
#include "core/output/output_cursor.h"
#include "core/preview/preview.h"
#include "core/process/process_table.h"
#include "core/process/start_command.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox_request.h"
#include "launch/app/part_command.h"
#include "launch/stage/app_health.h"
#include "launch/stage/part_state.h"
#include "launch/stage/pipeline.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MIN_MS 10
#define LOOK_MAX_MS 150
#define CLOSE_MS    10000 /* an old process of the app has so long to let go of its port */

static const enum launch_wait waits[ROLE_COUNT] = {LAUNCH_WAIT_BACKEND, LAUNCH_WAIT_FRONTEND};

/* --- start commands --- */

struct start_list {
	struct start_spec starts[SPEC_STARTS_MAX];
	struct text_pair env[SPEC_STARTS_MAX][SPEC_START_ENV_MAX];
	size_t count;
};

static void add_env(struct start_list *list, const json_t *env)
{
	struct start_spec *start = &list->starts[list->count];
	struct text_pair *pairs = list->env[list->count];
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		if (start->env.count < SPEC_START_ENV_MAX)
			pairs[start->env.count++] =
				(struct text_pair){name, json_string_value(value)};
	}
	start->env.pairs = pairs;
}

/* Those of the record but for one name. */
static void take_others(struct start_list *list, const json_t *starts, const char *name)
{
	json_t *start;
	size_t i;

	json_array_foreach((json_t *)starts, i, start)
	{
		if (strcmp(start_spec_name(start), name) == 0 || list->count >= SPEC_STARTS_MAX)
			continue;
		list->starts[list->count] = (struct start_spec){.name = start_spec_name(start),
			.command = json_string_value(json_object_get(start, "command")),
			.cwd = json_string_value(json_object_get(start, "cwd"))};
		add_env(list, json_object_get(start, "env"));
		list->count++;
	}
}

/* Gives the sandbox a start command in the place of the one of that name; NULL: none. */
static int set_start(struct pipeline *pipeline, const char *name, const struct start_spec *start,
	struct err *err)
{
	auto_free struct start_list *list = mem_new(sizeof(*list));
	struct sandbox_change change = {0};
	struct sandbox_record record;
	int r;

	sandbox_read(pipeline->sandbox, &record);
	take_others(list, record.start, name);
	if (start && list->count == SPEC_STARTS_MAX) {
		sandbox_record_fini(&record);
		return pipeline_fail(pipeline, "too_many_start_commands", "remove one",
			"the sandbox has %d start commands of its own", SPEC_STARTS_MAX);
	}
	if (start) {
		list->starts[list->count++] = *start;
	}
	change.starts = list->starts;
	change.start_count = list->count;
	r = sandbox_request_change(pipeline->sandbox, &pipeline->caller, &change, err);
	sandbox_record_fini(&record);
	return r;
}

static bool has_start(struct pipeline *pipeline, const char *name)
{
	struct sandbox_record record;
	bool found = false;
	json_t *start;
	size_t i;

	sandbox_read(pipeline->sandbox, &record);
	json_array_foreach(record.start, i, start) found |=
		strcmp(start_spec_name(start), name) == 0;
	sandbox_record_fini(&record);
	return found;
}

void pipeline_read_output(
	struct sandbox *sandbox, unsigned process, char tail[SANDBOX_COMMAND_TAIL + 1])
{
	struct output_log *log;
	struct output_cursor *cursor;
	struct output_piece piece;
	struct err ignored;
	size_t len = 0;

	tail[0] = '\0';
	if (!process || process_table_open_log(sandbox, process, &log, &ignored) < 0)
		return;
	cursor = output_cursor_new(log, output_cursor_tail(log, SANDBOX_COMMAND_TAIL));
	while (len < SANDBOX_COMMAND_TAIL) {
		output_cursor_read(cursor, tail + len, SANDBOX_COMMAND_TAIL - len, &piece);
		if (piece.kind == OUTPUT_NONE)
			break;
		if (piece.kind != OUTPUT_CUT)
			len += (size_t)(piece.next - piece.offset);
	}
	output_cursor_free(cursor);
	output_log_unref(log);
	for (size_t i = 0; i < len; i++)
		tail[i] = tail[i] ? tail[i] : ' ';
	tail[len] = '\0';
}

static int fail_by_start(struct pipeline *pipeline, const struct start_command_state *state)
{
	const char *error = start_command_error(state), *more;
	char tail[SANDBOX_COMMAND_TAIL + 1], exception[FAILURE_CAUSE_EXCEPTION_LEN];

	/* It was never run: by a policy of its owner, say. */
	if (error)
		return pipeline_fail(pipeline, state->error.code, state->error.remedy, "%s", error);
	pipeline_read_output(pipeline->sandbox, state->process, tail);
	pipeline_fail_by_end(pipeline, &state->end, tail);
	if (strcmp(pipeline->cause.code, "failed") != 0)
		return PIPELINE_FAILED;
	failure_cause_read_exception(tail, exception);
	/* What the network refused is told as the cause of the stage, or beside it. */
	more = exception[0] ? exception : state->end.reason == END_EXITED ? "" : state->end.detail;
	return pipeline_fail(pipeline, "exited", "read the last lines of the stage",
		"it ended with exit code %d%s%s", state->exit_code, more[0] ? ": " : "", more);
}

/* --- whether it is up --- */

/* Until the next look: what takes longer may be seen a little later. */
static void wait_to_look(uint64_t began_ms)
{
	uint64_t wait_ms = (clock_steady_ms() - began_ms) / 16;

	poll(NULL, 0,
		wait_ms < LOOK_MIN_MS	? LOOK_MIN_MS
		: wait_ms > LOOK_MAX_MS ? LOOK_MAX_MS
					: (int)wait_ms);
}

static bool is_ready(struct pipeline *pipeline, enum app_role role, uint16_t port, int *ret_status)
{
	const char *base = pipeline->detection.parts[role].is_base_told ? pipeline->base : "/";

	if (!app_health_listens(pipeline->sandbox, port))
		return false;
	if (role == ROLE_BACKEND &&
		(*ret_status = app_health_ask(pipeline->sandbox, port, "/health")) == 200)
		return true;
	*ret_status = app_health_ask(pipeline->sandbox, port, base);
	return *ret_status != APP_HEALTH_NONE && *ret_status < 500;
}

static bool is_known_port(const struct pipeline *pipeline, uint16_t port)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		if (pipeline->detection.has_part[role] &&
			pipeline->detection.parts[role].port == port)
			return true;
	}
	return false;
}

/* Fails if it listens where no preview gets to: on another port, or at another address. 0: it does not listen. */
static int fail_by_place(
	struct pipeline *pipeline, uint16_t port, const struct start_command_state *state)
{
	struct port_list list = {0};
	int r = 0;

	if (preview_look_around(pipeline->sandbox, &list) < 0)
		return 0;
	for (size_t i = 0; i < list.count && r == 0; i++) {
		const struct port *found = &list.ports[i];
		json_auto_t *shown = port_to_json(found);

		if (found->process != state->process)
			continue;
		if (found->number == port && !port_is_reachable(found))
			r = pipeline_fail(pipeline, "bound_elsewhere",
				"listen at 127.0.0.1 or 0.0.0.0",
				"it listens on port %u, but at an address that previews do not "
				"reach: %s",
				port, json_string_value(json_object_get(shown, "address")));
		else if (!is_known_port(pipeline, found->number))
			r = pipeline_fail(pipeline, "bound_elsewhere",
				"listen on the port in PORT, or say the port in sandlot.json",
				"it listens on port %u, not on %u", found->number, port);
	}
	port_list_fini(&list);
	return r;
}

static int fail_by_timeout(struct pipeline *pipeline, enum app_role role, int status,
	const struct start_command_state *state)
{
	uint16_t port = pipeline->detection.parts[role].port;
	uint64_t limit_ms = pipeline_timeout_ms(pipeline, waits[role]);
	char tail[SANDBOX_COMMAND_TAIL + 1];

	pipeline_read_output(pipeline->sandbox, state->process, tail);
	/* A development server that cannot make its page says why, and goes on. */
	pipeline_fail_by_output(pipeline, tail);
	if (status != APP_HEALTH_NONE && strcmp(pipeline->cause.code, "failed") != 0)
		return PIPELINE_FAILED;
	if (status != APP_HEALTH_NONE)
		return pipeline_fail(pipeline, "app_error", "read the last lines of the stage",
			"it answers on port %u, but with status %d", port, status);
	if (fail_by_place(pipeline, port, state) < 0)
		return PIPELINE_FAILED;
	return pipeline_fail(pipeline, "not_ready",
		"have it listen on PORT at 127.0.0.1 or 0.0.0.0, or give it more time with "
		"timeouts",
		"nothing answered on port %u within %llu s", port,
		(unsigned long long)limit_ms / 1000);
}

static int wait_until_ready(struct pipeline *pipeline, enum app_role role)
{
	const char *name = framework_role_name(role);
	uint64_t began_ms = clock_steady_ms();
	uint64_t until_ms = began_ms + pipeline_timeout_ms(pipeline, waits[role]);
	struct start_command_state state = {0};
	int status = APP_HEALTH_NONE;

	while (clock_steady_ms() < until_ms) {
		if (job_must_stop(pipeline->job))
			return -ECANCELED;
		start_command_read(pipeline->sandbox, name, &state);
		if (state.status == START_COMMAND_WAITING || state.status == START_COMMAND_EXITED ||
			state.status == START_COMMAND_KILLED || state.restarts > 0)
			return fail_by_start(pipeline, &state);
		if (is_ready(pipeline, role, pipeline->detection.parts[role].port, &status)) {
			pipeline_log(pipeline, "port %u answers with status %d",
				pipeline->detection.parts[role].port, status);
			return 0;
		}
		wait_to_look(began_ms);
	}
	return fail_by_timeout(pipeline, role, status, &state);
}

/* --- the stages --- */

/* Nobody else may have the port: it would be taken for the app. */
static int free_port(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const char *name = framework_role_name(role);
	uint16_t port = pipeline->detection.parts[role].port;
	uint64_t began_ms = clock_steady_ms(), until_ms = began_ms + CLOSE_MS;
	bool was_ours = has_start(pipeline, name);
	int r = was_ours ? set_start(pipeline, name, NULL, err) : 0;

	if (r < 0)
		return r;
	while (app_health_listens(pipeline->sandbox, port)) {
		if (!was_ours || clock_steady_ms() >= until_ms)
			return pipeline_fail(pipeline, "port_in_use",
				"another process of the sandbox has it: end that, or choose "
				"another port",
				"the port is in use: %u", port);
		wait_to_look(began_ms);
	}
	return 0;
}

/* A start command with the texts that it borrows. */
struct part_start {
	struct start_list list; /* it alone */
	char command[APP_COMMAND_MAX];
	char *cwd, *line; /* owned */
};

static void part_start_fini(struct part_start *start)
{
	free(start->cwd);
	free(start->line);
}

/* Where the part is looked for, if that is not where PORT says: its code may name a port, and .env another. */
static void set_port(json_t *env, uint16_t port)
{
	const char *told = json_string_value(json_object_get(env, "PORT"));

	if (!told || strtoul(told, NULL, 10) != port)
		json_object_set_new(env, MEMBER_PART_PORT, json_sprintf("%u", port));
}

static void set_missing(json_t *env, const char *name, const char *value)
{
	if (value && !json_object_get(env, name))
		json_object_set_new(env, name, json_string(value));
}

/* What npm tells to a script. Configs of Vite show the version of the app by it, say. */
static void set_npm_env(struct pipeline *pipeline, enum app_role role, const char *cwd)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	json_auto_t *package = file_set_read_json(&pipeline->files, part->dir, "package.json");
	auto_free char *path = file_set_join(cwd, "package.json");
	json_t *env = pipeline->env[role];

	set_missing(env, "npm_lifecycle_event", part->script);
	set_missing(env, "npm_lifecycle_script", part_command_script(package, part->script));
	set_missing(env, "npm_package_json", path);
	set_missing(env, "npm_package_name", json_string_value(json_object_get(package, "name")));
	set_missing(
		env, "npm_package_version", json_string_value(json_object_get(package, "version")));
	set_missing(env, "INIT_CWD", cwd);
}

/* Programs of the packages are found by their names, also those of a workspace, which npm puts above it. */
static char *node_line(const struct app_part *part, const char *command)
{
	char *path = mem_strdup("$PWD/node_modules/.bin"), *up = mem_strdup("$PWD");
	char *line;

	for (const char *at = part->dir[0] ? part->dir : NULL; at; at = strchr(at + 1, '/')) {
		char *above = mem_printf("%s/..", up);
		char *more = mem_printf("%s:%s/node_modules/.bin", path, above);

		free(up);
		free(path);
		up = above;
		path = more;
	}
	line = mem_printf("PATH=\"%s:$PATH\"; export PATH; %s", path, command);
	free(up);
	free(path);
	return line;
}

/* The environment is the pipeline's. */
static void make_start(struct pipeline *pipeline, enum app_role role, struct part_start *start)
{
	const struct app_part *part = &pipeline->detection.parts[role];

	*start = (struct part_start){.cwd = part->dir[0] ? file_set_join(PIPELINE_APP, part->dir)
							 : mem_strdup(PIPELINE_APP)};
	part_command_line(part, pipeline->base, start->command);
	start->line = part->framework->runtime == RUNTIME_NODE
			      ? node_line(part, start->command)
			      : mem_printf("PATH=\"$PWD/.venv/bin:$PATH\"; export PATH; %s",
					start->command);
	/* npm would look for a newer one of itself, which is no matter of the app. */
	if (part->framework->runtime == RUNTIME_NODE)
		json_object_set_new(
			pipeline->env[role], "npm_config_update_notifier", json_string("false"));
	if (part->script)
		set_npm_env(pipeline, role, start->cwd);
	set_port(pipeline->env[role], part->port);
	start->list.starts[0] = (struct start_spec){.name = framework_role_name(role),
		.cwd = start->cwd,
		.command =
			part->framework->runtime == RUNTIME_STATIC ? start->command : start->line};
	add_env(&start->list, pipeline->env[role]);
}

static bool is_start_of_record(struct pipeline *pipeline, const struct start_spec *wanted)
{
	json_auto_t *spec = start_spec_to_json(wanted);
	struct sandbox_record record;
	bool found = false;
	json_t *start;
	size_t i;

	sandbox_read(pipeline->sandbox, &record);
	json_array_foreach(record.start, i, start)
	{
		found |= start_spec_digest(start) == start_spec_digest(spec);
	}
	sandbox_record_fini(&record);
	return found;
}

/* Whether its process can stay: it was started so, from the same files and packages, and it answers. */
static int is_up_to_date(struct pipeline *pipeline, enum app_role role,
	const struct start_spec *wanted, struct err *err)
{
	struct start_command_state state = {0};
	int status, r = part_state_read(pipeline, role, err);

	if (r < 0)
		return r;
	if (pipeline->is_forced || !is_start_of_record(pipeline, wanted))
		return 0;
	start_command_read(pipeline->sandbox, wanted->name, &state);
	return state.status == START_COMMAND_RUNNING &&
	       part_state_is_started(&pipeline->states[role], state.process) &&
	       is_ready(pipeline, role, pipeline->detection.parts[role].port, &status);
}

static int start_part(struct pipeline *pipeline, enum app_role role, const struct part_start *start,
	struct err *err)
{
	const char *name = framework_role_name(role);
	struct start_command_state state = {0};
	struct err unused;
	int r = free_port(pipeline, role, err);

	if (r == 0)
		r = services_await(pipeline);
	if (r < 0)
		return r;
	pipeline_log(pipeline, "%s", start->command);
	r = set_start(pipeline, name, &start->list.starts[0], err);
	if (r < 0)
		return r;
	r = wait_until_ready(pipeline, role);
	if (r < 0) {
		(void)!set_start(pipeline, name, NULL, &unused);
		return r;
	}
	start_command_read(pipeline->sandbox, name, &state);
	return part_state_note_start(pipeline, role, state.process, err);
}

static int launch_part(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	const char *name = framework_role_name(role);
	bool is_path = strcmp(pipeline->base, "/") != 0;
	struct sandbox_port_change port = {.number = part->port,
		.keeps_prefix = !is_path	     ? CHOICE_UNSET
				: part->is_base_told ? CHOICE_YES
						     : CHOICE_NO};
	auto_free struct part_start *start = NULL;
	struct sandbox_port ignored;
	int r;

	if (!pipeline->detection.has_part[role]) {
		r = has_start(pipeline, name) ? set_start(pipeline, name, NULL, err) : 0;
		return r < 0 ? r : PIPELINE_SKIPPED;
	}
	r = sandbox_request_change_port(pipeline->sandbox, &port, &ignored, err);
	if (r < 0)
		return r;
	start = mem_new(sizeof(*start));
	make_start(pipeline, role, start);
	r = is_up_to_date(pipeline, role, &start->list.starts[0], err);
	if (r == 1)
		pipeline_log(pipeline,
			"%s runs already, and nothing that it has loaded has changed", name);
	else if (r == 0)
		r = start_part(pipeline, role, start, err);
	part_start_fini(start);
	if (r >= 0)
		json_object_set_new(pipeline->record.document,
			role == ROLE_BACKEND ? "backend_port" : "frontend_port",
			json_integer(part->port));
	return r; /* 1 is PIPELINE_SKIPPED */
}

int stage_launch_backend(struct pipeline *pipeline, struct err *err)
{
	return launch_part(pipeline, ROLE_BACKEND, err);
}

int stage_launch_frontend(struct pipeline *pipeline, struct err *err)
{
	return launch_part(pipeline, ROLE_FRONTEND, err);
}
