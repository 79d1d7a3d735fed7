/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/project_defaults.h"

#include "store/work/store_project.h"

#include <errno.h>
#include <string.h>

static const json_t *config_member(const struct project_record *record, const char *name)
{
	return json_object_get(json_object_get(record->defaults, "environment_config"), name);
}

static bool is_node(const char *template_name)
{
	return strncmp(template_name, "node", 4) == 0;
}

static void fill_number(uint64_t *place, const json_t *resources, const char *name)
{
	if (*place == 0)
		*place = (uint64_t)json_integer_value(json_object_get(resources, name));
}

static void fill_ports(struct project_defaults *defaults, const json_t *ports)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)ports, i, one)
	{
		if (i < array_len(defaults->ports))
			defaults->ports[i] =
				(struct port_spec){.number = (uint16_t)json_integer_value(one)};
	}
	defaults->spec.ports = defaults->ports;
	defaults->spec.port_count = i < array_len(defaults->ports) ? i : array_len(defaults->ports);
}

/* The project's packages come first: of one that both name the request's text counts. */
static void fill_packages(struct project_defaults *defaults, const json_t *packages)
{
	const char *template_name = defaults->spec.template_name;
	struct text_list *list = template_name && is_node(template_name)
					 ? &defaults->spec.dependencies.node
					 : &defaults->spec.dependencies.python;
	size_t count = 0, i;
	const json_t *one;

	json_array_foreach((json_t *)packages, i, one)
	{
		if (count < DEPENDENCY_PACKAGES_MAX)
			defaults->packages[count++] = json_string_value(one);
	}
	for (i = 0; i < list->count && count < array_len(defaults->packages); i++)
		defaults->packages[count++] = list->texts[i];
	if (count > 0)
		*list = (struct text_list){defaults->packages, count};
}

static void fill(struct project_defaults *defaults)
{
	const json_t *kept = defaults->record.defaults;
	const json_t *resources = json_object_get(kept, "resources");
	struct sandbox_spec *spec = &defaults->spec;

	if (!spec->template_name && !spec->snapshot)
		spec->template_name = json_string_value(json_object_get(kept, "environment_type"));
	fill_number(&spec->resources.cpu_millis, resources, "cpu_millis");
	fill_number(&spec->resources.memory_bytes, resources, "memory_bytes");
	fill_number(&spec->resources.disk_bytes, resources, "disk_bytes");
	fill_number(&spec->resources.pids, resources, "pids");
	if (spec->port_count == 0 && json_object_get(kept, "ports"))
		fill_ports(defaults, json_object_get(kept, "ports"));
	if (spec->idle_timeout_s == 0)
		spec->idle_timeout_s = json_integer_value(json_object_get(kept, "idle_timeout_s"));
	fill_packages(defaults, config_member(&defaults->record, "packages"));
}

int project_defaults_fill(struct projects *projects, const struct owner *owner,
	const struct sandbox_spec *spec, struct project_defaults *ret_defaults, struct err *err)
{
	int r;

	ret_defaults->spec = *spec;
	ret_defaults->record = (struct project_record){0};
	if (!projects || !spec->project)
		return 0;
	r = store_project_get(projects_config_of(projects)->store, owner, spec->project,
		&ret_defaults->record, err);
	if (r == -ENOENT && !id_is_valid(spec->project))
		return 0;
	if (r < 0)
		return r;
	ret_defaults->spec.project = ret_defaults->record.name;
	fill(ret_defaults);
	return 0;
}

void project_defaults_fini(struct project_defaults *defaults)
{
	project_record_fini(&defaults->record);
}

/* A copy of what the project of a sandbox has as a member of environment_config; NULL if it has none. */
static json_t *read_config(
	struct projects *projects, const struct sandbox_record *record, const char *name)
{
	struct project_record project;
	struct err ignored;
	const json_t *value;
	json_t *copy;

	if (!projects || !record->project[0] ||
		store_project_get(projects_config_of(projects)->store, &record->owner,
			record->project, &project, &ignored) < 0)
		return NULL;
	value = config_member(&project, name);
	copy = value ? json_deep_copy(value) : NULL;
	project_record_fini(&project);
	return copy;
}

json_t *project_defaults_env(struct projects *projects, const struct sandbox_record *record)
{
	json_t *env = read_config(projects, record, "env_vars");

	return env ? env : json_object();
}

json_t *project_defaults_packages(struct projects *projects, const struct sandbox_record *record)
{
	json_t *packages = read_config(projects, record, "packages");

	return json_pack("{s:o}", is_node(record->template_name) ? "node" : "python",
		packages ? packages : json_array());
}
