/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/member_body.h"

#include "api/env_body.h"
#include "api/sandbox/resources_body.h"
#include "core/sandbox/member.h"
#include "core/template/templates.h"
#include "model/template/template_record.h"

#include <stdio.h>
#include <string.h>

struct health_row {
	const char *command, *path;
	int64_t port, interval_ms, timeout_ms, retries, start_period_ms;
};

struct member_row {
	const char *role, *template_name, *command, *restart;
	const json_t *env, *depends_on;
	struct sandbox_resources_body resources;
	int64_t port;
	struct health_row health;
};

static const char *check_template(const json_t *value)
{
	return template_text_is_valid(json_string_value(value))
		       ? NULL
		       : "must be the name of a template or of an image";
}

static const struct field health_rows[] = {
	{"command", FIELD_STRING, offsetof(struct health_row, command), 1, MEMBER_COMMAND_MAX, 0,
		"A line for /bin/sh, which ends with status 0 if it is healthy."},
	{"port", FIELD_INTEGER, offsetof(struct health_row, port), 1, 65535, 0,
		"A port that takes connections if it is healthy."},
	{"path", FIELD_STRING, offsetof(struct health_row, path), 1, MEMBER_PATH_MAX - 1, 0,
		"What a request to the port asks for: the status is from 200 to 399 if it is "
		"healthy."},
	{"interval_ms", FIELD_INTEGER, offsetof(struct health_row, interval_ms), 100,
		MEMBER_INTERVAL_MAX_MS, 0,
		"Between two checks; 5000 if left out. Until it is healthy it is asked more "
		"often."},
	{"timeout_ms", FIELD_INTEGER, offsetof(struct health_row, timeout_ms), 10,
		MEMBER_INTERVAL_MAX_MS, 0,
		"How long the command, or the answer to a request, may take; 3000 if left out."},
	{"retries", FIELD_INTEGER, offsetof(struct health_row, retries), 1, MEMBER_RETRIES_MAX, 0,
		"After so many failures in a row it is unhealthy; 3 if left out."},
	{"start_period_ms", FIELD_INTEGER, offsetof(struct health_row, start_period_ms), 1,
		MEMBER_INTERVAL_MAX_MS, 0,
		"One that has not been healthy yet is unhealthy after so long; 60000 if left out."},
};

const struct field member_body_rows[MEMBER_BODY_ROWS] = {
	{"role", FIELD_STRING, offsetof(struct member_row, role), 1, 15, FIELD_REQUIRED,
		"What it is to the others; each role once. primary is the sandbox itself.",
		.choices = member_roles},
	{"template", FIELD_STRING, offsetof(struct member_row, template_name), 1,
		SANDBOX_TEMPLATE_MAX - 1, 0,
		"What it starts from: a template, such as postgres15 or redis7, or an image. host "
		"if left out.",
		.check = check_template},
	{"command", FIELD_STRING, offsetof(struct member_row, command), 1, MEMBER_COMMAND_MAX, 0,
		"What it runs, a line for /bin/sh; if left out, what its template or image "
		"starts."},
	{"env", FIELD_STRING_MAP, offsetof(struct member_row, env), 0, SPEC_ENV_MAX, 0,
		"Environment of its commands, beside what the other members give: DATABASE_URL, "
		"REDIS_URL.",
		.check = env_body_check},
	{"resources", FIELD_OBJECT, offsetof(struct member_row, resources), 0, 0, 0,
		"Its own limits. All members write to the disk of the sandbox: `disk` is added to "
		"that.",
		.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},
	{"port", FIELD_INTEGER, offsetof(struct member_row, port), 1, 65535, 0,
		"Where it serves; if left out, the first port of its template. No two have one."},
	{"depends_on", FIELD_STRING_LIST, offsetof(struct member_row, depends_on), 0, MEMBERS_MAX,
		0,
		"Roles that must be healthy before its commands start; if left out, database and "
		"cache for all others."},
	{"health", FIELD_OBJECT, offsetof(struct member_row, health), 0, 0, 0,
		"How it is seen to be healthy; if left out, as its template says, or by its port.",
		.sub = health_rows, .sub_count = array_len(health_rows)},
	{"restart", FIELD_STRING, offsetof(struct member_row, restart), 1, 15, 0,
		"When what it runs is run again after its end; on-failure if left out.",
		.choices = member_restarts},
};

/* --- decoding --- */

static uint64_t number_from(int64_t value)
{
	return value == FIELD_ABSENT ? 0 : (uint64_t)value;
}

static struct text_list list_from(const json_t *list, const char *texts[])
{
	return (struct text_list){list ? texts : NULL, fields_copy_list(list, texts)};
}

static int decode(const json_t *object, size_t at, struct member_body_parts *parts, struct err *err)
{
	const struct fields fields = {member_body_rows, MEMBER_BODY_ROWS};
	struct member_spec *spec = &parts->members[at];
	struct member_row row = {0};
	char prefix[32];
	int r;

	fields_clear(&fields, &row);
	snprintf(prefix, sizeof(prefix), "members[%zu].", at);
	r = fields_decode(&fields, object, &row, err);
	if (r == 0)
		r = resources_body_decode(&row.resources, prefix, &spec->resources, err);
	if (r < 0)
		return r;
	spec->role = row.role;
	spec->template_name = row.template_name;
	spec->command = row.command;
	spec->restart = row.restart;
	spec->env = (struct text_map){parts->env[at], fields_copy_map(row.env, parts->env[at])};
	spec->port = (uint16_t)number_from(row.port);
	spec->depends_on = list_from(row.depends_on, parts->depends_on[at]);
	spec->health = (struct member_health){.command = row.health.command,
		.path = row.health.path,
		.port = (uint16_t)number_from(row.health.port),
		.interval_ms = number_from(row.health.interval_ms),
		.timeout_ms = number_from(row.health.timeout_ms),
		.retries = number_from(row.health.retries),
		.start_period_ms = number_from(row.health.start_period_ms),
		.is_given = json_object_get(object, "health") != NULL};
	return 0;
}

static int refuse_twice(const char *field, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_field", "say it in one of both places",
		"field %s is given for the sandbox, and for the member primary too", field);
}

static bool has_name(struct text_map map, const char *name)
{
	for (size_t i = 0; i < map.count; i++) {
		if (strcmp(map.pairs[i].name, name) == 0)
			return true;
	}
	return false;
}

static void fill(uint64_t *place, uint64_t value)
{
	if (!*place)
		*place = value;
}

static int merge_primary(const struct member_spec *primary, struct sandbox_spec *spec,
	struct text_pair env[static SPEC_ENV_MAX], struct start_spec starts[static SPEC_STARTS_MAX],
	struct err *err)
{
	if (primary->template_name && spec->template_name &&
		strcmp(primary->template_name, spec->template_name) != 0)
		return refuse_twice("template", err);
	if (primary->command && spec->start_count > 0)
		return refuse_twice("start", err);
	if (!spec->template_name)
		spec->template_name = primary->template_name;
	if (primary->command) {
		starts[0] = (struct start_spec){.name = "main", .command = primary->command};
		spec->start_count = 1;
	}
	for (size_t i = 0; i < primary->env.count && spec->env.count < SPEC_ENV_MAX; i++) {
		if (!has_name(spec->env, primary->env.pairs[i].name))
			env[spec->env.count++] = primary->env.pairs[i];
	}
	fill(&spec->resources.cpu_millis, primary->resources.cpu_millis);
	fill(&spec->resources.memory_bytes, primary->resources.memory_bytes);
	fill(&spec->resources.disk_bytes, primary->resources.disk_bytes);
	fill(&spec->resources.pids, primary->resources.pids);
	return 0;
}

int member_body_decode(const json_t *list, struct member_body_parts *parts,
	struct sandbox_spec *spec, struct text_pair env[static SPEC_ENV_MAX],
	struct start_spec starts[static SPEC_STARTS_MAX], struct err *err)
{
	json_t *entry;
	int r = 0;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		r = decode(entry, i, parts, err);
		if (r == 0 && member_role_parse(parts->members[i].role) == MEMBER_PRIMARY)
			r = merge_primary(&parts->members[i], spec, env, starts, err);
		if (r < 0)
			return r;
	}
	spec->members = list ? parts->members : NULL;
	spec->member_count = json_array_size(list);
	return 0;
}

/* --- encoding --- */

json_t *member_body_encode(const struct api *api, const struct sandbox_record *record)
{
	struct member_view states[MEMBERS_MAX];
	size_t count = member_read_all(api->engine, record, states);
	json_t *list = json_array();

	count = member_read_parts(api->engine, record, states, count);
	for (size_t i = 0; i < count; i++) {
		const struct member_view *state = &states[i];

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:o}", "id", state->id,
				"role", state->role, "template", state->template_name,
				"runtime_type", state->runtime_type, "port",
				state->port ? json_integer(state->port) : json_null(), "status",
				state->status, "health", state->health, "error_message",
				state->error_message[0] ? json_string(state->error_message)
							: json_null()));
	}
	return list;
}
