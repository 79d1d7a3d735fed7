/* SPDX-License-Identifier: Apache-2.0 */
#include "api/template/template_options_body.h"

const struct field template_options_body_ready[2] = {
	{"command", FIELD_STRING,
		offsetof(struct template_options_body, ready.command) -
			offsetof(struct template_options_body, ready),
		1, TEMPLATE_READY_LINE_MAX, 0, "A line for /bin/sh that succeeds then. Or:"},
	{"port", FIELD_INTEGER,
		offsetof(struct template_options_body, ready.port) -
			offsetof(struct template_options_body, ready),
		1, 65535, 0, "A port that is listened on then."},
};

const struct field template_options_body_pool[1] = {
	{"size", FIELD_INTEGER, 0, 0, TEMPLATE_POOL_MAX, 0, "How many."},
};

/* The members that a create has too, decoded as those of a create are. */
static int decode_shared(const json_t *object, struct sandbox_body *ret_body, struct err *err)
{
	static const char *const names[] = {
		"env", "ports", "resources", "network", "start", "members"};
	json_auto_t *shared = json_object();
	int r;

	for (size_t i = 0; i < array_len(names); i++) {
		json_t *value = json_object_get(object, names[i]);

		if (value && !json_is_null(value))
			json_object_set(shared, names[i], value);
	}
	r = sandbox_body_decode(shared, ret_body, err);
	return r;
}

int template_options_body_decode(const json_t *object, const struct template_options_body *body,
	struct template_options_parts *ret_parts, struct err *err)
{
	struct template_options *options = &ret_parts->options;
	int r = decode_shared(object, &ret_parts->sandbox, err);

	if (r < 0)
		return r;
	*options = (struct template_options){.spec = &ret_parts->sandbox.spec,
		.has_env = body->env,
		.has_resources = json_object_get(object, "resources"),
		.has_ports = body->ports,
		.has_network = json_is_object(json_object_get(object, "network")),
		.unsets_network = json_is_null(json_object_get(object, "network")),
		.has_start = body->start,
		.has_members = body->members,
		.user = body->user,
		.workdir = body->workdir,
		.ready_command = body->ready.command,
		.ready_port = body->ready.port == FIELD_ABSENT ? 0 : body->ready.port,
		.has_ready = json_is_object(json_object_get(object, "ready")),
		.unsets_ready = json_is_null(json_object_get(object, "ready")),
		.pool_size = body->pool.size == FIELD_ABSENT ? -1 : body->pool.size,
		.security = body->security,
		.skeleton = body->skeleton,
		.starts_image = fields_choice(body->start_image),
		.is_pinned = fields_choice(body->pinned),
		.languages = {body->languages ? ret_parts->languages : NULL,
			fields_copy_list(body->languages, ret_parts->languages)}};
	return 0;
}

/* Only the limits that are set. Of the options of a template, or of a member among them. */
static json_t *resources_to_json(const json_t *options)
{
	struct resources resources = template_options_resources(options);
	json_t *object = sandbox_resources_to_json(&resources);

	if (!resources.cpu_millis)
		json_object_del(object, "cpu");
	if (!resources.memory_bytes)
		json_object_del(object, "memory");
	if (!resources.disk_bytes)
		json_object_del(object, "disk");
	if (!resources.pids)
		json_object_del(object, "pids");
	return object;
}

/* As they were given. */
static json_t *members_to_json(const json_t *options)
{
	json_t *list = json_deep_copy(json_object_get(options, "members")), *member;
	size_t i;

	json_array_foreach(list, i, member)
	{
		json_object_set_new(member, "resources", resources_to_json(member));
	}
	return list ? list : json_array();
}

void template_options_body_encode(json_t *template, const json_t *options)
{
	static const char *const plain[] = {"network", "ready", "pool"};
	json_t *languages = json_object_get(options, "languages");
	const char *security = json_string_value(json_object_get(options, "security"));

	json_object_set_new(template, "resources",
		json_object_get(options, "resources") ? resources_to_json(options) : json_null());
	for (size_t i = 0; i < array_len(plain); i++) {
		json_t *value = json_object_get(options, plain[i]);

		json_object_set_new(
			template, plain[i], value ? json_deep_copy(value) : json_null());
	}
	json_object_set_new(
		template, "languages", languages ? json_deep_copy(languages) : json_array());
	json_object_set_new(
		template, "security", json_string(security && security[0] ? security : "default"));
	json_object_set_new(template, "members", members_to_json(options));
	json_object_set_new(template, "skeleton", json_string(template_options_skeleton(options)));
	json_object_set_new(template, "start_image",
		json_boolean(json_is_true(json_object_get(options, "start_image"))));
	json_object_set_new(
		template, "pinned", json_boolean(json_is_true(json_object_get(options, "pinned"))));
	json_object_set_new(
		template, "start", start_body_encode(json_object_get(options, "start"), NULL));
}
