/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/member_default.h"

#include <string.h>

static void set_text(json_t *object, const char *name, const char *text)
{
	if (text)
		json_object_set_new(object, name, json_string(text));
}

static void set_number(json_t *object, const char *name, uint64_t number)
{
	if (number)
		json_object_set_new(object, name, json_integer((json_int_t)number));
}

static json_t *resources_to_json(const struct resources *resources)
{
	json_t *object = json_object();

	set_number(object, "cpu_millis", resources->cpu_millis);
	set_number(object, "memory_bytes", resources->memory_bytes);
	set_number(object, "disk_bytes", resources->disk_bytes);
	set_number(object, "pids", resources->pids);
	return object;
}

static json_t *to_json(const struct member_spec *member)
{
	json_t *object = json_pack("{s:s}", "role", member->role);

	set_text(object, "template", member->template_name);
	set_text(object, "command", member->command);
	set_text(object, "restart", member->restart);
	set_number(object, "port", member->port);
	json_object_set_new(object, "env", text_map_to_json(member->env));
	json_object_set_new(object, "resources", resources_to_json(&member->resources));
	if (member->depends_on.texts)
		json_object_set_new(object, "depends_on", text_list_to_json(member->depends_on));
	if (member->health.is_given)
		json_object_set_new(object, "health", member_health_to_json(&member->health));
	return object;
}

json_t *member_default_to_json(const struct member_spec *members, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, to_json(&members[i]));
	return list;
}

/* --- reading --- */

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static struct text_map read_env(json_t *env, struct text_pair pairs[static SPEC_ENV_MAX])
{
	struct text_map map = {pairs, 0};
	const char *name;
	json_t *value;

	json_object_foreach(env, name, value)
	{
		if (map.count < SPEC_ENV_MAX)
			pairs[map.count++] = (struct text_pair){name, json_string_value(value)};
	}
	return map;
}

static struct text_list read_list(const json_t *list, const char *texts[static MEMBERS_MAX])
{
	size_t count = json_array_size(list);

	if (count > MEMBERS_MAX)
		count = MEMBERS_MAX;
	for (size_t i = 0; i < count; i++)
		texts[i] = json_string_value(json_array_get(list, i));
	return (struct text_list){list ? texts : NULL, count};
}

static struct member_health read_health(const json_t *health)
{
	return (struct member_health){.command = text_of(health, "command"),
		.port = (uint16_t)number_of(health, "port"),
		.path = text_of(health, "path"),
		.interval_ms = number_of(health, "interval_ms"),
		.timeout_ms = number_of(health, "timeout_ms"),
		.retries = number_of(health, "retries"),
		.start_period_ms = number_of(health, "start_period_ms"),
		.is_given = health};
}

void member_default_read(const json_t *list, struct member_defaults *ret_defaults)
{
	json_t *object;
	size_t i;

	ret_defaults->count = 0;
	json_array_foreach((json_t *)list, i, object)
	{
		const json_t *resources = json_object_get(object, "resources");

		if (i == MEMBERS_MAX)
			return;
		ret_defaults->members[i] = (struct member_spec){.role = text_of(object, "role"),
			.template_name = text_of(object, "template"),
			.command = text_of(object, "command"),
			.env = read_env(json_object_get(object, "env"), ret_defaults->env[i]),
			.resources = {.cpu_millis = number_of(resources, "cpu_millis"),
				.memory_bytes = number_of(resources, "memory_bytes"),
				.disk_bytes = number_of(resources, "disk_bytes"),
				.pids = number_of(resources, "pids")},
			.port = (uint16_t)number_of(object, "port"),
			.depends_on = read_list(
				json_object_get(object, "depends_on"), ret_defaults->depends_on[i]),
			.health = read_health(json_object_get(object, "health")),
			.restart = text_of(object, "restart")};
		ret_defaults->count = i + 1;
	}
}
