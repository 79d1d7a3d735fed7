/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/snapshot_record.h"

#include <stdio.h>
#include <string.h>

void snapshot_record_fini(struct snapshot_record *record)
{
	json_decref(record->settings);
	record->settings = NULL;
}

bool snapshot_name_is_valid(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		if ((unsigned char)name[len] < ' ' || name[len] == 0x7f)
			return false;
	}
	return len >= 1 && len < SNAPSHOT_NAME_MAX;
}

json_t *snapshot_record_describe(const struct sandbox_record *record)
{
	return json_pack(
		"{s:s, s:{s:I, s:I, s:I, s:I}, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:I, s:I, s:b}",
		"template", record->template_name, "resources", "cpu_millis",
		(json_int_t)record->resources.cpu_millis, "memory_bytes",
		(json_int_t)record->resources.memory_bytes, "disk_bytes",
		(json_int_t)record->resources.disk_bytes, "pids",
		(json_int_t)record->resources.pids, "env", record->env, "ports", record->ports,
		"labels", record->labels, "network", record->network, "image", record->image,
		"dependencies", record->dependencies, "start", record->start, "idle_timeout_s",
		(json_int_t)record->idle_timeout_s, "lifetime_s", (json_int_t)record->lifetime_s,
		"private", record->is_private);
}

static void copy_member(const json_t *settings, const char *name, json_t **place)
{
	const json_t *value = json_object_get(settings, name);

	if (!value)
		return;
	json_decref(*place);
	*place = json_deep_copy(value);
}

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* A copy has what was installed, not what was being installed. */
static void apply_dependencies(const json_t *settings, struct sandbox_record *record)
{
	json_t *shown;

	copy_member(settings, "dependencies", &record->dependencies);
	shown = json_object_get(record->dependencies, "shown");
	json_object_del(record->dependencies, "job");
	json_object_del(record->dependencies, "requested");
	if (shown)
		json_object_set(record->dependencies, "requested", shown);
}

void snapshot_record_apply(const json_t *settings, struct sandbox_record *record)
{
	const char *template = json_string_value(json_object_get(settings, "template"));
	const json_t *resources = json_object_get(settings, "resources");

	snprintf(record->template_name, sizeof(record->template_name), "%s",
		template ? template : "host");
	record->resources = (struct resources){.cpu_millis = number_of(resources, "cpu_millis"),
		.memory_bytes = number_of(resources, "memory_bytes"),
		.disk_bytes = number_of(resources, "disk_bytes"),
		.pids = number_of(resources, "pids")};
	copy_member(settings, "env", &record->env);
	copy_member(settings, "ports", &record->ports);
	copy_member(settings, "labels", &record->labels);
	copy_member(settings, "network", &record->network);
	copy_member(settings, "image", &record->image);
	apply_dependencies(settings, record);
	copy_member(settings, "start", &record->start);
	record->idle_timeout_s = json_integer_value(json_object_get(settings, "idle_timeout_s"));
	record->lifetime_s = json_integer_value(json_object_get(settings, "lifetime_s"));
	record->is_private = json_is_true(json_object_get(settings, "private"));
}

void snapshot_record_draft(const struct snapshot_record *snapshot, const char *driver,
	struct sandbox_record *ret_draft)
{
	sandbox_record_init(ret_draft);
	ret_draft->owner = snapshot->owner;
	snapshot_record_apply(snapshot->settings, ret_draft);
	copy_member(snapshot->settings, "members", &ret_draft->members);
	snprintf(ret_draft->driver, sizeof(ret_draft->driver), "%s", driver);
	memcpy(ret_draft->snapshot, snapshot->id, sizeof(ret_draft->snapshot));
}

int snapshot_not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "snapshot_not_found",
		"list the snapshots that there are", "there is no snapshot %.64s", id);
}
