/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/sandbox_body.h"

#include "api/env_body.h"
#include "api/sandbox/start_body.h"
#include "base/clock.h"
#include "core/sandbox/sandbox.h"
#include "core/template/templates_request.h"
#include "model/sandbox/egress_rule.h"
#include "model/sandbox/network_default.h"
#include "model/size.h"
#include "model/template/template_record.h"

#include <stdio.h>
#include <string.h>

/* --- checks --- */

static const char *check_labels(const json_t *labels)
{
	const char *key, *wrong = NULL;
	json_t *value;

	json_object_foreach((json_t *)labels, key, value)
	{
		if (!wrong)
			wrong = sandbox_spec_check_label(key, json_string_value(value));
	}
	return wrong;
}

static const char *check_allow(const json_t *list)
{
	size_t i;
	json_t *entry;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (strstr(json_string_value(entry), "://"))
			return "has a URL: leave out https:// and the path";
		if (!egress_rule_is_valid(json_string_value(entry)))
			return "has an entry that is no name, address or network, with or without "
			       ":port";
	}
	return NULL;
}

static const char *check_secrets(const json_t *list)
{
	size_t i;
	json_t *entry;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (!secret_name_is_valid(json_string_value(entry)))
			return "has an entry that is no name of a secret";
	}
	return NULL;
}

static const char *check_id(const json_t *value)
{
	return id_is_valid(json_string_value(value)) ? NULL : "must be 26 characters of 0-9a-z";
}

static const char *check_sandbox_name(const json_t *value)
{
	return sandbox_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be like \"web\" or \"my-app-2\": a to z, 0 to 9 and -, a letter "
			 "first, 40 at "
			 "most";
}

static const char *check_template(const json_t *value)
{
	return template_text_is_valid(json_string_value(value))
		       ? NULL
		       : "must be the name of a template or of an image";
}

static const char *check_name(const json_t *value)
{
	return model_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be letters, digits, . _ - with a letter or digit first";
}

/* --- tables --- */

struct create_body {
	const char *id, *name, *template_name, *snapshot, *project, *session;
	struct sandbox_resources_body resources;
	const json_t *env, *ports, *labels;
	struct sandbox_network_body network;
	int64_t idle_timeout_s, lifetime_s;
	enum field_boolean is_private, waits;
	const json_t *members, *start;
	struct dependency_body dependencies;
	enum field_boolean start_env;
};

const struct field sandbox_network_rows[SANDBOX_NETWORK_ROWS] = {
	{"mode", FIELD_STRING, offsetof(struct sandbox_network_body, mode), 1, 16, 0,
		"What may be reached outside: nothing, what `allow` names, or also all public "
		"addresses. allowlist if only `allow` is given; else what the operator has set for "
		"the template.",
		.choices = network_modes},
	{"allow", FIELD_STRING_LIST, offsetof(struct sandbox_network_body, allow), 0,
		SPEC_ALLOW_MAX, 0,
		"Names, *.names, addresses and networks, each with or without :port. Addresses "
		"that are not public are refused unless they are here, whatever name leads "
		"there.",
		.check = check_allow},
	{"secrets", FIELD_STRING_LIST, offsetof(struct sandbox_network_body, secrets), 0,
		SECRETS_IN_USE, 0,
		"Names of secrets (PUT /v1/secrets/{secret}) that its requests may be given: their "
		"servers are http://<name>.internal inside, in every mode.",
		.check = check_secrets},
	{"bandwidth", FIELD_SIZE, offsetof(struct sandbox_network_body, bandwidth),
		SPEC_BANDWIDTH_MIN, SPEC_BANDWIDTH_MAX, 0,
		"Bytes a second that it may send and receive; what the operator has set, at most."},
	{"connections", FIELD_INTEGER, offsetof(struct sandbox_network_body, connections), 1,
		SPEC_CONNECTIONS_MAX, 0,
		"Connections that it may have open; what the operator has set, at most."},
};

static const struct field create_rows[] = {
	{"id", FIELD_STRING, offsetof(struct create_body, id), 26, 26, 0,
		"The id; chosen for you when left out. A kept workspace of that id is taken up "
		"again.",
		.check = check_id},
	{"name", FIELD_STRING, offsetof(struct create_body, name), 1, SANDBOX_NAME_MAX - 1,
		FIELD_NULLABLE | FIELD_NAME,
		"A name of your own that stands wherever its id may; no two sandboxes of an owner "
		"have the same. It is the host name inside.",
		.check = check_sandbox_name},
	{"template", FIELD_STRING, offsetof(struct create_body, template_name), 1,
		SANDBOX_TEMPLATE_MAX - 1, 0,
		"What it starts from: the name of a template, or an image such as "
		"registry.example/app:1, which is fetched first if it was not used before.",
		.check = check_template},
	{"snapshot", FIELD_STRING, offsetof(struct create_body, snapshot), ID_LEN, ID_LEN, 0,
		"A snapshot: it starts with those files and, where this body says nothing else, "
		"with "
		"the settings that the sandbox had then. No template goes with it.",
		.check = check_id},
	{"project", FIELD_STRING, offsetof(struct create_body, project), 1, 63, FIELD_NULLABLE,
		"The project it belongs to, by name or id; a name that is not there yet is made, "
		"empty. One sandbox for each project and session of an owner.",
		.check = check_name},
	{"session", FIELD_STRING, offsetof(struct create_body, session), 1, 63, FIELD_NULLABLE,
		"What tells sandboxes of one project apart: a chat, a branch.",
		.check = check_name},
	{"resources", FIELD_OBJECT, offsetof(struct create_body, resources), 0, 0, 0, "Limits.",
		.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},
	{"env", FIELD_STRING_MAP, offsetof(struct create_body, env), 0, SPEC_ENV_MAX, 0,
		"Environment of every command.", .check = env_body_check},
	{"ports", FIELD_PORT_LIST, offsetof(struct create_body, ports), 0, SANDBOX_PORTS_MAX, 0,
		"Ports that have previews: numbers, or objects that say more of one."},
	{"labels", FIELD_STRING_MAP, offsetof(struct create_body, labels), 0, SPEC_LABELS_MAX, 0,
		"Names and values of your own, for finding it again.", .check = check_labels},
	{"network", FIELD_OBJECT, offsetof(struct create_body, network), 0, 0, 0, "Egress policy.",
		.sub = sandbox_network_rows, .sub_count = SANDBOX_NETWORK_ROWS},
	{"idle_timeout_s", FIELD_INTEGER, offsetof(struct create_body, idle_timeout_s), 1,
		SPEC_YEAR_S, FIELD_NULLABLE, "Stops after so long without use; null: never."},
	{"lifetime_s", FIELD_INTEGER, offsetof(struct create_body, lifetime_s), 1, SPEC_YEAR_S,
		FIELD_NULLABLE, "Is deleted so long after its creation; null: never."},
	{"private", FIELD_BOOLEAN, offsetof(struct create_body, is_private), 0, 0, 0,
		"Whether previews need a link or token."},
	{"start", FIELD_LINE_OR_LIST, offsetof(struct create_body, start), 1,
		SPEC_START_COMMAND_MAX, 0,
		"What it runs whenever it starts, and again when that fails: a line for /bin/sh, "
		"or a "
		"list of commands. Needs the scope run too.",
		.sub = start_body_rows, .sub_count = START_BODY_ROWS, .check = start_body_check},
	{"start_env", FIELD_BOOLEAN, offsetof(struct create_body, start_env), 0, 0, 0,
		"Whether start commands that a sandbox of a pool has running begin anew with "
		"`env`. "
		"Without it `env` reaches what is started later."},
	{"wait", FIELD_BOOLEAN, offsetof(struct create_body, waits), 0, 0, 0,
		"Whether the answer comes when it runs. false: if its image is not there yet, it "
		"comes "
		"at once, with 202, the status creating and the id of the job that fetches the "
		"image."},
	{"dependencies", FIELD_OBJECT, offsetof(struct create_body, dependencies), 0, 0, 0,
		"Packages to install beside its template. If the same were installed before it "
		"starts with them, else they come while it runs. Needs the scope run too.",
		.sub = dependency_body_rows, .sub_count = DEPENDENCY_BODY_ROWS},
	{"members", FIELD_OBJECT_LIST, offsetof(struct create_body, members), 0, MEMBERS_MAX, 0,
		"What runs beside it, such as its database, in its network and with its "
		"workspace. Needs the scope run too.",
		.sub = member_body_rows, .sub_count = MEMBER_BODY_ROWS},
};

const struct fields sandbox_body_fields = FIELDS(create_rows);

struct patch_body {
	const char *name;
	int64_t idle_timeout_s, lifetime_s;
	struct sandbox_resources_body resources;
	const json_t *labels, *ports, *start;
	enum field_boolean is_private;
	struct sandbox_network_body network;
};

static const struct field patch_rows[] = {
	{"name", FIELD_STRING, offsetof(struct patch_body, name), 1, SANDBOX_NAME_MAX - 1,
		FIELD_NULLABLE | FIELD_NAME,
		"A name of your own, or null: none. The host name inside follows with the next "
		"start.",
		.check = check_sandbox_name},
	{"idle_timeout_s", FIELD_INTEGER, offsetof(struct patch_body, idle_timeout_s), 1,
		SPEC_YEAR_S, FIELD_NULLABLE, "Stops after so long without use; null: never."},
	{"lifetime_s", FIELD_INTEGER, offsetof(struct patch_body, lifetime_s), 1, SPEC_YEAR_S,
		FIELD_NULLABLE, "Is deleted so long after its creation; null: never."},
	{"labels", FIELD_STRING_MAP, offsetof(struct patch_body, labels), 0, SPEC_LABELS_MAX, 0,
		"Replaces all labels.", .check = check_labels},
	{"ports", FIELD_PORT_LIST, offsetof(struct patch_body, ports), 0, SANDBOX_PORTS_MAX, 0,
		"Replaces all ports."},
	{"private", FIELD_BOOLEAN, offsetof(struct patch_body, is_private), 0, 0, 0,
		"Whether previews need a link or token."},
	{"network", FIELD_OBJECT, offsetof(struct patch_body, network), 0, 0, 0,
		"Replaces the egress policy.", .sub = sandbox_network_rows,
		.sub_count = SANDBOX_NETWORK_ROWS},
	{"resources", FIELD_OBJECT, offsetof(struct patch_body, resources), 0, 0, 0,
		"Changes limits, at once, also while it runs. Less memory than it uses is refused.",
		.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},
	{"start", FIELD_LINE_OR_LIST, offsetof(struct patch_body, start), 1, SPEC_START_COMMAND_MAX,
		FIELD_NULLABLE,
		"Replaces the start commands, at once if it runs; null: none. Commands need the "
		"scope run too.",
		.sub = start_body_rows, .sub_count = START_BODY_ROWS, .check = start_body_check},
};

const struct fields sandbox_patch_fields = FIELDS(patch_rows);

/* --- decoding --- */

/* Seconds as a spec has them. */
static int64_t seconds_from(int64_t value)
{
	if (value == FIELD_ABSENT)
		return 0;
	return value == FIELD_NULL ? SANDBOX_NO_LIMIT : value;
}

static uint64_t number_from(int64_t value)
{
	return value == FIELD_ABSENT ? 0 : (uint64_t)value;
}

static struct text_list list_from(const json_t *list, const char *texts[])
{
	return (struct text_list){list ? texts : NULL, fields_copy_list(list, texts)};
}

static struct network_spec network_from(
	const struct sandbox_network_body *body, struct sandbox_body_parts *parts)
{
	return (struct network_spec){.mode = body->mode,
		.allow = list_from(body->allow, parts->allow),
		.secrets = list_from(body->secrets, parts->secrets),
		.bandwidth = number_from(body->bandwidth),
		.connections = number_from(body->connections)};
}

/* They were checked by their field (model/sandbox/sandbox_port.h). */
static size_t copy_ports(const json_t *list, struct port_spec ports[])
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		const json_t *is_public = json_object_get(entry, "public");
		const char *prefix = json_string_value(json_object_get(entry, "prefix"));

		ports[i] = (struct port_spec){.number = sandbox_port_number(entry),
			.is_public = !is_public		       ? CHOICE_UNSET
				     : json_is_true(is_public) ? CHOICE_YES
							       : CHOICE_NO,
			.keeps_prefix = prefix && strcmp(prefix, "keep") == 0};
	}
	return json_array_size(list);
}

/* What is asked for at once must go together. A change may turn the network off and keep the rules for later. */
static int check_none(const struct sandbox_network_body *network, struct err *err)
{
	if (!network->mode || strcmp(network->mode, "none") != 0 ||
		json_array_size(network->allow) == 0)
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_field",
		"leave out network.mode, or make it allowlist",
		"field network.allow does not go with the mode none, which reaches nothing");
}

int sandbox_body_decode(const json_t *object, struct sandbox_body *ret_body, struct err *err)
{
	struct sandbox_spec *spec = &ret_body->spec;
	struct sandbox_body_parts *parts = &ret_body->parts;
	struct create_body body = {0};
	int r;

	fields_clear(&sandbox_body_fields, &body);
	r = fields_decode(&sandbox_body_fields, object, &body, err);
	if (r == 0)
		r = resources_body_decode(&body.resources, "", &spec->resources, err);
	if (r == 0)
		r = check_none(&body.network, err);
	if (r < 0)
		return r;
	spec->id = body.id;
	spec->name = body.name;
	spec->template_name = body.template_name;
	spec->snapshot = body.snapshot;
	spec->project = body.project;
	spec->session = body.session;
	spec->env = (struct text_map){parts->env, fields_copy_map(body.env, parts->env)};
	spec->labels =
		(struct text_map){parts->labels, fields_copy_map(body.labels, parts->labels)};
	spec->ports = parts->ports;
	spec->port_count = copy_ports(body.ports, parts->ports);
	spec->network = network_from(&body.network, parts);
	spec->idle_timeout_s = seconds_from(body.idle_timeout_s);
	spec->lifetime_s = seconds_from(body.lifetime_s);
	spec->is_private = fields_choice(body.is_private);
	spec->waits = fields_choice(body.waits);
	spec->restarts_start = fields_choice(body.start_env) == CHOICE_YES;
	spec->starts = parts->start.commands;
	spec->start_count = start_body_decode(body.start, &parts->start);
	spec->dependencies = dependency_body_decode(&body.dependencies, &parts->dependencies);
	return member_body_decode(
		body.members, &parts->members, spec, parts->env, parts->start.commands, err);
}

int sandbox_body_decode_change(
	const json_t *object, struct sandbox_change_body *ret_body, struct err *err)
{
	struct sandbox_change *change = &ret_body->change;
	struct sandbox_body_parts *parts = &ret_body->parts;
	struct patch_body body = {0};
	struct resources resources;
	int r;

	fields_clear(&sandbox_patch_fields, &body);
	r = fields_decode(&sandbox_patch_fields, object, &body, err);
	if (r < 0)
		return r;
	r = resources_body_decode(&body.resources, "", &resources, err);
	if (r < 0)
		return r;
	ret_body->network = network_from(&body.network, parts);
	/* null is none, here and for `start`, which is not the same as nothing said */
	if (json_object_get(object, "name") && !body.name)
		body.name = "";
	*change = (struct sandbox_change){.name = body.name,
		.idle_timeout_s = seconds_from(body.idle_timeout_s),
		.lifetime_s = seconds_from(body.lifetime_s),
		.resources = resources,
		.labels = {body.labels ? parts->labels : NULL,
			fields_copy_map(body.labels, parts->labels)},
		.ports = body.ports ? parts->ports : NULL,
		.port_count = copy_ports(body.ports, parts->ports),
		.is_private = fields_choice(body.is_private),
		.network = json_object_get(object, "network") ? &ret_body->network : NULL,
		.starts = json_object_get(object, "start") ? parts->start.commands : NULL,
		.start_count = start_body_decode(body.start, &parts->start)};
	return 0;
}

/* --- encoding --- */

static json_t *limit_to_json(int64_t limit)
{
	return limit == SANDBOX_NO_LIMIT ? json_null() : json_integer(limit);
}

static json_t *text_to_json(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *size_to_json(uint64_t bytes)
{
	char text[SIZE_TEXT_LEN];

	size_format(bytes, text);
	return json_string(text);
}

static json_t *cpu_to_json(uint64_t millis)
{
	return millis % 1000 ? json_real((double)millis / 1000)
			     : json_integer((json_int_t)(millis / 1000));
}

static json_t *previews_to_json(const struct api *api, const struct sandbox_record *record)
{
	json_t *previews = json_object(), *port;
	size_t i;

	json_array_foreach(record->ports, i, port)
	{
		char key[8], url[API_PREVIEW_URL_MAX];

		snprintf(key, sizeof(key), "%u", sandbox_port_number(port));
		api_preview_url(api, record->id, sandbox_port_number(port), url);
		json_object_set_new(previews, key, json_string(url));
	}
	return previews;
}

json_t *sandbox_walls_to_json(const struct walls *walls)
{
	json_t *object = json_object();

	for (int i = 0; i < WALL_COUNT; i++)
		json_object_set_new(object, wall_name(i), text_to_json(walls->how[i]));
	return object;
}

json_t *sandbox_resources_to_json(const struct resources *resources)
{
	return json_pack("{s:o, s:o, s:o, s:I}", "cpu", cpu_to_json(resources->cpu_millis),
		"memory", size_to_json(resources->memory_bytes), "disk",
		size_to_json(resources->disk_bytes), "pids", (json_int_t)resources->pids);
}

/* The environment is left out: it is where people put secrets. */
json_t *sandbox_to_json(const struct api *api, const struct sandbox_record *record)
{
	json_t *owner = json_pack("{s:s, s:s, s:o}", "organization", record->owner.organization,
		"user", record->owner.user, "project", text_to_json(record->project));
	json_t *resources = sandbox_resources_to_json(&record->resources);
	bool is_up = record->status == SANDBOX_RUNNING || record->status == SANDBOX_PAUSED;

	if (record->session[0])
		json_object_set_new(owner, "session", json_string(record->session));
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:s, s:o, s:O, s:O, s:O, s:o, s:o, s:b, s:o, "
			 "s:o, s:o, s:o,"
			 " s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:s, s:b, s:o}",
		"id", record->id, "name", text_to_json(record->name), "status",
		sandbox_status_name(record->status), "owner", owner, "template",
		record->template_name, "driver", record->driver, "resources", resources, "ports",
		record->ports, "labels", record->labels, "network", record->network,
		"idle_timeout_s", limit_to_json(record->idle_timeout_s), "lifetime_s",
		limit_to_json(record->lifetime_s), "private", record->is_private, "previews",
		previews_to_json(api, record), "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "started_at",
		api_stored_time_to_json(api, record->started_at_ms), "last_active_at",
		api_stored_time_to_json(api, record->last_active_at_ms), "expires_at",
		api_stored_time_to_json(api, record->expires_at_ms), "termination",
		is_up ? json_null() : termination_to_json(&record->end), "last_termination",
		termination_to_json(&record->end), "error_message",
		text_to_json(record->error_message), "start",
		start_body_encode(record->start, NULL), "upgradable",
		templates_is_upgradable(api->engine, record, NULL), "job",
		text_to_json(record->job), "security",
		template_profile_name(template_profile_of(record)), "ready", 0, "members",
		member_body_encode(api, record));
}
