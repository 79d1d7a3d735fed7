/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox_body.h"

#include "api/network_body.h"
#include "api/process_body.h"
#include "api/start_body.h"
#include "base/clock.h"
#include "model/sandbox_port.h"
#include "model/size.h"
#include "model/template.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define YEAR_S	      (366 * 86400)
#define ENV_VALUE_MAX (128 * 1024 - 256) /* the kernel's limit for one string, less a name */
#define LABEL_MAX     256
#define MEMORY_MIN    (16 << 20)
#define ENV_ENTRIES   256
#define LABEL_ENTRIES 64

/* --- checks --- */

static bool is_env_name(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '_')
			return false;
	}
	return strlen(name) <= 128;
}

const char *sandbox_check_env(const json_t *env)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		if (!is_env_name(name))
			return "has a name that is not letters, digits and _ (up to 128, no digit "
			       "first)";
		if (json_string_length(value) > ENV_VALUE_MAX)
			return "has a value that is too long";
	}
	return NULL;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text))
			return true;
	}
	return false;
}

static const char *check_labels(const json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)labels, key, value)
	{
		size_t len = strspn(
			key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");

		if (key[len] || len < 1 || len > 63)
			return "has a key that is not 1 to 63 of a-z A-Z 0-9 . _ / -";
		if (json_string_length(value) > LABEL_MAX || has_control(json_string_value(value)))
			return "has a value with control characters or more than 256 bytes";
	}
	return NULL;
}

static const char *check_id(const json_t *value)
{
	return id_is_valid(json_string_value(value)) ? NULL : "must be 26 characters of 0-9a-z";
}

static const char *check_name(const json_t *value)
{
	return model_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be letters, digits, . _ - with a letter or digit first";
}

/* --- tables --- */

struct resources_body {
	double cpu;
	int64_t memory, disk, pids;
};

struct create_body {
	const char *id, *template_name, *project;
	struct resources_body resources;
	const json_t *env, *ports, *labels;
	struct network_body network;
	int64_t idle_timeout_s, lifetime_s;
	enum field_boolean is_private;
	const json_t *members, *start;
};

static const struct field resources_rows[] = {
	{"cpu", FIELD_NUMBER, offsetof(struct resources_body, cpu), 0, 1024, 0,
		"Cores; fractions are fine, 0.01 at least."},
	{"memory", FIELD_SIZE, offsetof(struct resources_body, memory), MEMORY_MIN, 1ll << 50, 0,
		"Memory, 16Mi at least."},
	{"disk", FIELD_SIZE, offsetof(struct resources_body, disk), 1 << 20, 1ll << 60, 0,
		"Disk: all that it writes outside of /dev/shm."},
	{"pids", FIELD_INTEGER, offsetof(struct resources_body, pids), 4, 4 << 20, 0,
		"Processes and threads."},
};

static const struct field create_rows[] = {
	{"id", FIELD_STRING, offsetof(struct create_body, id), 26, 26, 0,
		"The id; chosen for you when left out. A kept workspace of that id is taken up "
		"again.",
		.check = check_id},
	{"template", FIELD_STRING, offsetof(struct create_body, template_name), 1, 63, 0,
		"What it starts from.", .check = check_name},
	{"project", FIELD_STRING, offsetof(struct create_body, project), 1, 63, FIELD_NULLABLE,
		"The project it belongs to; one sandbox for each project of an owner.",
		.check = check_name},
	{"resources", FIELD_OBJECT, offsetof(struct create_body, resources), 0, 0, 0, "Limits.",
		.sub = resources_rows, .sub_count = array_len(resources_rows)},
	{"env", FIELD_STRING_MAP, offsetof(struct create_body, env), 0, ENV_ENTRIES, 0,
		"Environment of every command.", .check = sandbox_check_env},
	{"ports", FIELD_PORT_LIST, offsetof(struct create_body, ports), 0, SANDBOX_PORTS_MAX, 0,
		"Ports that have previews: numbers, or objects that say more of one."},
	{"labels", FIELD_STRING_MAP, offsetof(struct create_body, labels), 0, LABEL_ENTRIES, 0,
		"Names and values of your own, for finding it again.", .check = check_labels},
	{"network", FIELD_OBJECT, offsetof(struct create_body, network), 0, 0, 0, "Egress policy.",
		.sub = network_body_rows, .sub_count = NETWORK_BODY_ROWS},
	{"idle_timeout_s", FIELD_INTEGER, offsetof(struct create_body, idle_timeout_s), 1, YEAR_S,
		FIELD_NULLABLE, "Stops after so long without use; null: never."},
	{"lifetime_s", FIELD_INTEGER, offsetof(struct create_body, lifetime_s), 1, YEAR_S,
		FIELD_NULLABLE, "Is deleted so long after its creation; null: never."},
	{"private", FIELD_BOOLEAN, offsetof(struct create_body, is_private), 0, 0, 0,
		"Whether previews need a link or token."},
	{"start", FIELD_LINE_OR_LIST, offsetof(struct create_body, start), 1, START_LINE_MAX, 0,
		"What it runs whenever it starts, and again when that fails: a line for /bin/sh, "
		"or a "
		"list of commands.",
		.sub = start_body_rows, .sub_count = START_BODY_ROWS, .check = start_body_check},
	{"members", FIELD_EMPTY_LIST, offsetof(struct create_body, members), 0, 0, 0,
		"Reserved for databases and caches beside it."},
};

const struct fields sandbox_body_fields = FIELDS(create_rows);

struct patch_resources {
	int64_t disk;
};

struct patch_body {
	int64_t idle_timeout_s, lifetime_s;
	struct patch_resources resources;
	const json_t *labels, *ports, *start;
	enum field_boolean is_private;
	struct network_body network;
};

static const struct field patch_resources_rows[] = {
	{"disk", FIELD_SIZE, offsetof(struct patch_resources, disk), 1 << 20, 1ll << 60, 0,
		"Disk; at once, also while it runs."},
};

static const struct field patch_rows[] = {
	{"idle_timeout_s", FIELD_INTEGER, offsetof(struct patch_body, idle_timeout_s), 1, YEAR_S,
		FIELD_NULLABLE, "Stops after so long without use; null: never."},
	{"lifetime_s", FIELD_INTEGER, offsetof(struct patch_body, lifetime_s), 1, YEAR_S,
		FIELD_NULLABLE, "Is deleted so long after its creation; null: never."},
	{"labels", FIELD_STRING_MAP, offsetof(struct patch_body, labels), 0, LABEL_ENTRIES, 0,
		"Replaces all labels.", .check = check_labels},
	{"ports", FIELD_PORT_LIST, offsetof(struct patch_body, ports), 0, SANDBOX_PORTS_MAX, 0,
		"Replaces all ports."},
	{"private", FIELD_BOOLEAN, offsetof(struct patch_body, is_private), 0, 0, 0,
		"Whether previews need a link or token."},
	{"network", FIELD_OBJECT, offsetof(struct patch_body, network), 0, 0, 0,
		"Replaces the egress policy.", .sub = network_body_rows,
		.sub_count = NETWORK_BODY_ROWS},
	{"resources", FIELD_OBJECT, offsetof(struct patch_body, resources), 0, 0, 0,
		"Changes limits.", .sub = patch_resources_rows,
		.sub_count = array_len(patch_resources_rows)},
	{"start", FIELD_LINE_OR_LIST, offsetof(struct patch_body, start), 1, START_LINE_MAX,
		FIELD_NULLABLE, "Replaces the start commands, at once if it runs; null: none.",
		.sub = start_body_rows, .sub_count = START_BODY_ROWS, .check = start_body_check},
};

const struct fields sandbox_patch_fields = FIELDS(patch_rows);

/* --- decoding --- */

static int64_t limit_from(int64_t value, int64_t default_value)
{
	if (value == FIELD_ABSENT)
		return default_value;
	return value == FIELD_NULL ? SANDBOX_NO_LIMIT : value;
}

static int fill_resources(const struct api *api, const struct resources_body *body,
	struct resources *resources, struct err *err)
{
	*resources = api->default_resources;
	if (!isnan(body->cpu))
		resources->cpu_millis = (uint64_t)llround(body->cpu * 1000);
	if (resources->cpu_millis < 10)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field resources.cpu must be at least 0.01");
	if (body->memory != FIELD_ABSENT)
		resources->memory_bytes = (uint64_t)body->memory;
	if (body->disk != FIELD_ABSENT)
		resources->disk_bytes = (uint64_t)body->disk;
	if (body->pids != FIELD_ABSENT)
		resources->pids = (uint64_t)body->pids;
	return 0;
}

static void replace(json_t **place, const json_t *value)
{
	json_decref(*place);
	/* A copy: the body belongs to the request. */
	*place = json_deep_copy(value);
}

static void replace_ports(struct sandbox_record *record, const json_t *ports)
{
	json_decref(record->ports);
	record->ports = sandbox_port_copy(ports);
}

static const char *template_name(const struct create_body *body)
{
	return body->template_name ? body->template_name : "host";
}

static int check_template(const struct api *api, const char *name, struct err *err)
{
	if (!template_find(name))
		return err_explain(err, ERR_INVALID, "template_not_found",
			"use the template `host`", "there is no template %s", name);
	if (!template_is_offered(api->templates, name))
		return err_explain(err, ERR_INVALID, "template_not_offered",
			"start sandlotd with it in --templates",
			"the operator does not offer the template %s", name);
	return 0;
}

int sandbox_body_decode(const struct api *api, const struct request *req,
	struct sandbox_record *ret_draft, struct err *err)
{
	struct create_body body = {0};
	struct sandbox_record draft;
	struct resources resources;
	int r;

	fields_clear(&sandbox_body_fields, &body);
	r = fields_decode(&sandbox_body_fields, request_body(req), &body, err);
	if (r == 0)
		r = network_body_check(api, req, &body.network, err);
	if (r == 0)
		r = fill_resources(api, &body.resources, &resources, err);
	if (r == 0)
		r = check_template(api, template_name(&body), err);
	if (r < 0)
		return r;
	sandbox_record_init(&draft);
	draft.owner = api_owner(req);
	draft.resources = resources;
	snprintf(draft.id, sizeof(draft.id), "%s", body.id ? body.id : "");
	snprintf(draft.project, sizeof(draft.project), "%s", body.project ? body.project : "");
	snprintf(draft.template_name, sizeof(draft.template_name), "%s", template_name(&body));
	snprintf(draft.driver, sizeof(draft.driver), "%s", engine_driver(api->engine)->ops->name);
	draft.idle_timeout_s = limit_from(body.idle_timeout_s, api->default_idle_timeout_s);
	draft.lifetime_s = limit_from(body.lifetime_s, SANDBOX_NO_LIMIT);
	draft.is_private = body.is_private != FIELD_FALSE;
	if (body.env)
		replace(&draft.env, body.env);
	if (body.ports)
		replace_ports(&draft, body.ports);
	if (body.labels)
		replace(&draft.labels, body.labels);
	json_decref(draft.network);
	draft.network = network_body_make(api, &body.network, draft.template_name);
	json_decref(draft.start);
	draft.start = start_body_normalize(body.start);
	*ret_draft = draft;
	return 0;
}

int sandbox_patch_decode(const struct api *api, const struct request *req,
	const char *template_name, struct sandbox_patch *ret_patch, struct err *err)
{
	struct patch_body body = {0};
	int r;

	fields_clear(&sandbox_patch_fields, &body);
	r = fields_decode(&sandbox_patch_fields, request_body(req), &body, err);
	if (r == 0)
		r = network_body_check(api, req, &body.network, err);
	if (r < 0)
		return r;
	*ret_patch = (struct sandbox_patch){.idle_timeout_s = body.idle_timeout_s,
		.lifetime_s = body.lifetime_s,
		.disk_bytes = body.resources.disk,
		.labels = body.labels,
		.ports = body.ports,
		.is_private = body.is_private};
	if (json_object_get(request_body(req), "network"))
		ret_patch->network = network_body_make(api, &body.network, template_name);
	if (json_object_get(request_body(req), "start"))
		ret_patch->start = start_body_normalize(body.start);
	return 0;
}

void sandbox_patch_apply(struct sandbox_record *record, void *arg)
{
	const struct sandbox_patch *patch = arg;

	record->idle_timeout_s = limit_from(patch->idle_timeout_s, record->idle_timeout_s);
	record->lifetime_s = limit_from(patch->lifetime_s, record->lifetime_s);
	if (patch->disk_bytes != FIELD_ABSENT)
		record->resources.disk_bytes = (uint64_t)patch->disk_bytes;
	record->expires_at_ms = record->lifetime_s == SANDBOX_NO_LIMIT
					? 0
					: record->created_at_ms + record->lifetime_s * 1000;
	if (patch->labels)
		replace(&record->labels, patch->labels);
	if (patch->ports)
		replace_ports(record, patch->ports);
	if (patch->network)
		replace(&record->network, patch->network);
	if (patch->start)
		replace(&record->start, patch->start);
	if (patch->is_private != FIELD_UNSET)
		record->is_private = patch->is_private == FIELD_TRUE;
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

/* The environment is left out: it is where people put secrets. */
json_t *sandbox_to_json(const struct api *api, const struct sandbox_record *record)
{
	json_t *owner = json_pack("{s:s, s:s, s:o}", "organization", record->owner.organization,
		"user", record->owner.user, "project", text_to_json(record->project));
	json_t *resources =
		json_pack("{s:o, s:o, s:o, s:I}", "cpu", cpu_to_json(record->resources.cpu_millis),
			"memory", size_to_json(record->resources.memory_bytes), "disk",
			size_to_json(record->resources.disk_bytes), "pids",
			(json_int_t)record->resources.pids);

	return json_pack(
		"{s:s, s:s, s:o, s:s, s:s, s:o, s:O, s:O, s:O, s:o, s:o, s:b, s:o, s:o, s:o, s:o,"
		" s:o, s:o, s:o, s:o}",
		"id", record->id, "status", sandbox_status_name(record->status), "owner", owner,
		"template", record->template_name, "driver", record->driver, "resources", resources,
		"ports", record->ports, "labels", record->labels, "network", record->network,
		"idle_timeout_s", limit_to_json(record->idle_timeout_s), "lifetime_s",
		limit_to_json(record->lifetime_s), "private", record->is_private, "previews",
		previews_to_json(api, record), "created_at",
		api_time_to_json(record->created_at_ms), "started_at",
		api_time_to_json(record->started_at_ms), "last_active_at",
		api_time_to_json(record->last_active_at_ms), "expires_at",
		api_time_to_json(record->expires_at_ms), "termination",
		process_body_encode_termination(&record->end), "error_message",
		text_to_json(record->error_message), "start",
		start_body_encode(record->start, NULL));
}
