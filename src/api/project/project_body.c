/* SPDX-License-Identifier: Apache-2.0 */
#include "api/project/project_body.h"

#include "api/env_body.h"
#include "api/sandbox/sandbox_body.h"
#include "model/sandbox/sandbox_port.h"
#include "model/template/dependency_set.h"
#include "model/template/template_record.h"

#include <math.h>

struct config_body {
	const json_t *packages, *env_vars;
};

struct defaults_body {
	const char *environment_type;
	struct config_body config;
	struct sandbox_resources_body resources;
	const json_t *ports;
	int64_t idle_timeout_s;
};

struct body {
	const char *name;
	const json_t *labels;
	struct defaults_body defaults;
};

static const char *check_name(const json_t *value)
{
	return project_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be 1 to 63 characters of a-z A-Z 0-9 . _ - and not an id";
}

static const char *check_template(const json_t *value)
{
	return template_text_is_valid(json_string_value(value))
		       ? NULL
		       : "must be the name of a template or of an image";
}

/* Of either language: which one is known when the environment is. */
static const char *check_packages(const json_t *value)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)value, i, one)
	{
		const char *text = json_string_value(one);

		if (dependency_set_check_python(text) && dependency_set_check_node(text))
			return "must be packages: names, with versions or without";
	}
	return NULL;
}

static const char *check_labels(const json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)labels, key, value)
	{
		if (sandbox_spec_check_label(key, json_string_value(value)))
			return "has a name or a value that no label may have";
	}
	return NULL;
}

static const struct field config_rows[] = {
	{"packages", FIELD_STRING_LIST, offsetof(struct config_body, packages), 0,
		DEPENDENCY_PACKAGES_MAX, 0,
		"Packages that its sandboxes have: of npm if the environment is one of node, else "
		"of "
		"pip.",
		.check = check_packages},
	{"env_vars", FIELD_STRING_MAP, offsetof(struct config_body, env_vars), 0, SPEC_ENV_MAX, 0,
		"Environment of every command; what the sandbox has goes before it.",
		.check = env_body_check},
};

static const struct field defaults_rows[] = {
	{"environment_type", FIELD_STRING, offsetof(struct defaults_body, environment_type), 1,
		TEMPLATE_REFERENCE_MAX - 1, FIELD_NULLABLE,
		"The template of sandboxes that are created without one.", .check = check_template},
	{"environment_config", FIELD_OBJECT, offsetof(struct defaults_body, config), 0, 0, 0,
		"Looked at at every start of a sandbox.", .sub = config_rows,
		.sub_count = array_len(config_rows)},
	{"resources", FIELD_OBJECT, offsetof(struct defaults_body, resources), 0, 0, 0,
		"Limits of new sandboxes.", .sub = sandbox_resources_rows,
		.sub_count = SANDBOX_RESOURCES_ROWS},
	{"ports", FIELD_PORT_LIST, offsetof(struct defaults_body, ports), 0, SANDBOX_PORTS_MAX, 0,
		"Ports of new sandboxes that name none."},
	{"idle_timeout_s", FIELD_INTEGER, offsetof(struct defaults_body, idle_timeout_s), 1,
		INT32_MAX, FIELD_NULLABLE, "After which new sandboxes sleep."},
};

#define LABELS_ROW                                                                                 \
	{                                                                                          \
		"labels", FIELD_STRING_MAP, offsetof(struct body, labels), 0, SPEC_LABELS_MAX, 0,  \
			"Names and values of your own.", .check = check_labels                     \
	}
#define DEFAULTS_ROW                                                                               \
	{                                                                                          \
		"defaults", FIELD_OBJECT, offsetof(struct body, defaults), 0, 0, 0,                \
			"What its sandboxes are unless they are asked for otherwise. A PATCH "     \
			"replaces all of it.",                                                     \
			.sub = defaults_rows, .sub_count = array_len(defaults_rows)                \
	}

static const struct field create_rows[] = {
	{"name", FIELD_STRING, offsetof(struct body, name), 1, 63, FIELD_REQUIRED,
		"Its name, which stands wherever its id may; unique among those of its owner.",
		.check = check_name},
	LABELS_ROW,
	DEFAULTS_ROW,
};
const struct fields project_create_fields = FIELDS(create_rows);

static const struct field patch_rows[] = {
	{"name", FIELD_STRING, offsetof(struct body, name), 1, 63, 0,
		"A new name; only while no sandbox has the project.", .check = check_name},
	LABELS_ROW,
	DEFAULTS_ROW,
};
const struct fields project_patch_fields = FIELDS(patch_rows);

struct move_body {
	const char *path;
};

static const char *check_path(const json_t *value)
{
	return project_path_problem(json_string_value(value));
}

static const struct field move_rows[] = {
	{"path", FIELD_STRING, offsetof(struct move_body, path), 1, PROJECT_PATH_MAX - 1,
		FIELD_REQUIRED, "Its new path in the project.", .check = check_path},
};
const struct fields project_move_fields = FIELDS(move_rows);

/* --- in --- */

static void set_number(json_t *object, const char *name, int64_t value)
{
	if (value > 0)
		json_object_set_new(object, name, json_integer(value));
}

/* Only what was given is kept, in the form that a sandbox's record has. */
static json_t *keep_defaults(const json_t *given, const struct defaults_body *body)
{
	json_t *kept = json_object(), *resources = json_object();

	if (body->environment_type)
		json_object_set_new(kept, "environment_type", json_string(body->environment_type));
	if (json_object_get(given, "environment_config"))
		json_object_set_new(kept, "environment_config",
			json_deep_copy(json_object_get(given, "environment_config")));
	if (body->resources.cpu > 0)
		set_number(resources, "cpu_millis", llround(body->resources.cpu * 1000));
	set_number(resources, "memory_bytes", body->resources.memory);
	set_number(resources, "disk_bytes", body->resources.disk);
	set_number(resources, "pids", body->resources.pids);
	if (json_object_size(resources) > 0)
		json_object_set(kept, "resources", resources);
	json_decref(resources);
	if (body->ports)
		json_object_set_new(kept, "ports", json_deep_copy(body->ports));
	set_number(kept, "idle_timeout_s", body->idle_timeout_s);
	return kept;
}

int project_body_decode(const struct fields *fields, const json_t *object,
	struct project_body *ret_body, struct err *err)
{
	const json_t *defaults = json_object_get(object, "defaults");
	struct body body = {0};
	int r;

	fields_clear(fields, &body);
	r = fields_decode(fields, object, &body, err);
	if (r < 0)
		return r;
	*ret_body = (struct project_body){.name = body.name,
		.labels = body.labels,
		.defaults = defaults ? keep_defaults(defaults, &body.defaults) : NULL};
	return 0;
}

int project_body_decode_move(const json_t *object, const char **ret_path, struct err *err)
{
	struct move_body body = {0};
	int r;

	fields_clear(&project_move_fields, &body);
	r = fields_decode(&project_move_fields, object, &body, err);
	if (r == 0)
		*ret_path = body.path;
	return r;
}

/* --- out --- */

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* The members that are kept, as a body gives them. */
static json_t *resources_to_json(const json_t *kept)
{
	const struct resources resources = {.cpu_millis = number_of(kept, "cpu_millis"),
		.memory_bytes = number_of(kept, "memory_bytes"),
		.disk_bytes = number_of(kept, "disk_bytes"),
		.pids = number_of(kept, "pids")};
	static const char *const names[][2] = {{"cpu", "cpu_millis"}, {"memory", "memory_bytes"},
		{"disk", "disk_bytes"}, {"pids", "pids"}};
	json_t *shown = sandbox_resources_to_json(&resources);

	for (size_t i = 0; i < array_len(names); i++) {
		if (!json_object_get(kept, names[i][1]))
			json_object_del(shown, names[i][0]);
	}
	return shown;
}

json_t *project_to_json(const struct api *api, const struct project_record *record)
{
	const json_t *resources = json_object_get(record->defaults, "resources");
	json_t *defaults = json_deep_copy(record->defaults);

	if (resources)
		json_object_set_new(defaults, "resources", resources_to_json(resources));
	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:O, s:o, s:I, s:I, s:o, s:o}", "id", record->id,
		"name", record->name, "owner", "organization", record->owner.organization, "user",
		record->owner.user, "labels", record->labels, "defaults", defaults, "files",
		(json_int_t)record->files, "bytes", (json_int_t)record->bytes, "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "updated_at",
		api_stored_time_to_json(api, record->updated_at_ms));
}

json_t *project_file_to_json(const struct api *api, const struct project_file *file)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:b, s:s, s:o}", "id", file->id, "path",
		file->path, "size", (json_int_t)file->bytes, "sha256", file->sha256, "mime_type",
		file->type, "executable", file->is_executable, "uploader", file->uploader,
		"created_at", api_stored_time_to_json(api, file->created_at_ms));
}
