/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/sandbox_spec.h"

#include "model/sandbox/egress_rule.h"
#include "model/sandbox/network_default.h"
#include "model/template/template_record.h"

#include <ctype.h>
#include <string.h>

static int bad(const char *field, const char *what, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "field %s %s", field, what);
}

/* Whether a number is within bounds; 0 was not given. */
static int check_bounds(
	const char *field, uint64_t value, uint64_t min, uint64_t max, struct err *err)
{
	if (value == 0 || (value >= min && value <= max))
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_field", NULL,
		"field %s must be from %llu to %llu", field, (unsigned long long)min,
		(unsigned long long)max);
}

static int check_count(const char *field, size_t count, size_t max, struct err *err)
{
	if (count <= max)
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_field", NULL,
		"field %s must be from 0 to %zu entries", field, max);
}

static int check_seconds(const char *field, int64_t seconds, struct err *err)
{
	if (seconds == SANDBOX_NO_LIMIT)
		return 0;
	return check_bounds(field, (uint64_t)seconds, 1, SPEC_YEAR_S, err);
}

/* --- names and values --- */

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

const char *sandbox_spec_check_env(const char *name, size_t value_len)
{
	if (!is_env_name(name))
		return "has a name that is not letters, digits and _ (up to 128, no digit first)";
	return value_len > SPEC_ENV_VALUE_MAX ? "has a value that is too long" : NULL;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text))
			return true;
	}
	return false;
}

const char *sandbox_spec_check_label(const char *key, const char *value)
{
	size_t len =
		strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");

	if (key[len] || len < 1 || len > 63)
		return "has a key that is not 1 to 63 of a-z A-Z 0-9 . _ / -";
	if (strlen(value) > SPEC_LABEL_MAX || has_control(value))
		return "has a value with control characters or more than 256 bytes";
	return NULL;
}

int sandbox_spec_check_env_map(const char *field, struct text_map env, size_t max, struct err *err)
{
	int r = check_count(field, env.count, max, err);

	for (size_t i = 0; r == 0 && i < env.count; i++) {
		const char *wrong =
			sandbox_spec_check_env(env.pairs[i].name, strlen(env.pairs[i].value));

		if (wrong)
			r = bad(field, wrong, err);
	}
	return r;
}

static int check_labels(struct text_map labels, struct err *err)
{
	int r = check_count("labels", labels.count, SPEC_LABELS_MAX, err);

	for (size_t i = 0; r == 0 && i < labels.count; i++) {
		const char *wrong =
			sandbox_spec_check_label(labels.pairs[i].name, labels.pairs[i].value);

		if (wrong)
			r = bad("labels", wrong, err);
	}
	return r;
}

/* A name that is not given is fine. */
static int check_name(const char *field, const char *name, struct err *err)
{
	if (!name || model_name_is_valid(name))
		return 0;
	return bad(field, "must be letters, digits, . _ - with a letter or digit first", err);
}

/* The name of a sandbox; likewise. */
static int check_sandbox_name(const char *name, struct err *err)
{
	if (!name || sandbox_name_is_valid(name))
		return 0;
	return bad("name",
		"must be like \"web\" or \"my-app-2\": a to z, 0 to 9 and -, a letter first, 40 at "
		"most",
		err);
}

/* --- parts --- */

static int check_ports(const struct port_spec *ports, size_t count, struct err *err)
{
	int r = check_count("ports", count, SANDBOX_PORTS_MAX, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (ports[i].number == 0)
			r = bad("ports", "must hold ports, whole numbers from 1 to 65535", err);
		for (size_t j = 0; r == 0 && j < i; j++) {
			if (ports[i].number == ports[j].number)
				r = bad("ports", "has a port twice", err);
		}
	}
	return r;
}

static bool is_mode(const char *mode)
{
	size_t i = 0;

	while (network_modes[i] && strcmp(network_modes[i], mode) != 0)
		i++;
	return network_modes[i];
}

static int check_network(const struct network_spec *network, struct err *err)
{
	int r = check_count("network.allow", network->allow.count, SPEC_ALLOW_MAX, err);

	if (r == 0)
		r = check_count("network.secrets", network->secrets.count, SECRETS_IN_USE, err);
	if (r == 0)
		r = check_bounds("network.bandwidth", network->bandwidth, SPEC_BANDWIDTH_MIN,
			SPEC_BANDWIDTH_MAX, err);
	if (r == 0)
		r = check_bounds(
			"network.connections", network->connections, 1, SPEC_CONNECTIONS_MAX, err);
	if (r == 0 && network->mode && !is_mode(network->mode))
		r = bad("network.mode", "has a value that is not one of the known ones", err);
	for (size_t i = 0; r == 0 && i < network->allow.count; i++) {
		if (!egress_rule_is_valid(network->allow.texts[i]))
			r = bad("network.allow",
				"has an entry that is no name, address or network, with or without "
				":port",
				err);
	}
	for (size_t i = 0; r == 0 && i < network->secrets.count; i++) {
		if (!secret_name_is_valid(network->secrets.texts[i]))
			r = bad("network.secrets", "has an entry that is no name of a secret", err);
	}
	return r;
}

static int check_start(const struct start_spec *start, struct err *err)
{
	int r = start->name ? check_name("start.name", start->name, err)
			    : bad("start.name", "is missing", err);

	if (r == 0 && (!start->command || !start->command[0] ||
			      strlen(start->command) > SPEC_START_COMMAND_MAX))
		r = bad("start.command", "must be from 1 to 16384 bytes long", err);
	if (r == 0 && start->cwd && start->cwd[0] != '/')
		r = bad("start.cwd", "must be an absolute path", err);
	return r < 0 ? r
		     : sandbox_spec_check_env_map("start.env", start->env, SPEC_START_ENV_MAX, err);
}

static int check_starts(const struct start_spec *starts, size_t count, struct err *err)
{
	int r = check_count("start", count, SPEC_STARTS_MAX, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = check_start(&starts[i], err);
		for (size_t j = 0; r == 0 && j < i; j++) {
			if (strcmp(starts[i].name, starts[j].name) == 0)
				r = bad("start", "has a name twice", err);
		}
	}
	return r;
}

static int check_resources(const struct resources *resources, struct err *err)
{
	int r = check_bounds(
		"resources.memory", resources->memory_bytes, SPEC_MEMORY_MIN, SPEC_MEMORY_MAX, err);

	if (r == 0 && resources->cpu_millis > 0 && resources->cpu_millis < SPEC_CPU_MIN_MILLIS)
		r = bad("resources.cpu", "must be from 0.01 to 1024", err);
	if (r == 0 && resources->cpu_millis > SPEC_CPU_MAX_CORES * 1000)
		r = bad("resources.cpu", "must be from 0.01 to 1024", err);
	if (r == 0)
		r = check_bounds(
			"resources.disk", resources->disk_bytes, SPEC_DISK_MIN, SPEC_DISK_MAX, err);
	return r < 0 ? r
		     : check_bounds("resources.pids", resources->pids, SPEC_PIDS_MIN, SPEC_PIDS_MAX,
			       err);
}

/* --- the whole --- */

static int check_template(const char *text, struct err *err)
{
	if (!text || template_text_is_valid(text))
		return 0;
	return bad("template", "must be the name of a template or of an image", err);
}

int sandbox_spec_check(const struct sandbox_spec *spec, struct err *err)
{
	int r = 0;

	if (spec->id && !id_is_valid(spec->id))
		r = bad("id", "must be 26 characters of 0-9a-z", err);
	if (r == 0)
		r = check_sandbox_name(spec->name, err);
	if (r == 0)
		r = check_template(spec->template_name, err);
	if (r == 0)
		r = check_name("project", spec->project, err);
	if (r == 0)
		r = check_name("session", spec->session, err);
	if (r == 0)
		r = check_resources(&spec->resources, err);
	if (r == 0)
		r = sandbox_spec_check_env_map("env", spec->env, SPEC_ENV_MAX, err);
	if (r == 0)
		r = check_labels(spec->labels, err);
	if (r == 0)
		r = check_ports(spec->ports, spec->port_count, err);
	if (r == 0)
		r = check_network(&spec->network, err);
	if (r == 0)
		r = check_seconds("idle_timeout_s", spec->idle_timeout_s, err);
	if (r == 0)
		r = check_seconds("lifetime_s", spec->lifetime_s, err);
	if (r == 0)
		r = check_starts(spec->starts, spec->start_count, err);
	return r < 0 ? r : member_spec_check(spec->members, spec->member_count, err);
}

int sandbox_spec_check_change(const struct sandbox_change *change, struct err *err)
{
	int r = check_seconds("idle_timeout_s", change->idle_timeout_s, err);

	if (r == 0)
		r = check_seconds("lifetime_s", change->lifetime_s, err);
	if (r == 0)
		r = check_resources(&change->resources, err);
	if (r == 0)
		r = check_labels(change->labels, err);
	if (r == 0)
		r = check_ports(change->ports, change->port_count, err);
	if (r == 0 && change->network)
		r = check_network(change->network, err);
	return r < 0 ? r : check_starts(change->starts, change->start_count, err);
}

/* --- as the record keeps it --- */

static json_t *port_to_json(const struct port_spec *port)
{
	json_t *entry;

	if (port->is_public == CHOICE_UNSET && !port->keeps_prefix)
		return json_integer(port->number);
	entry = json_pack("{s:i}", "port", (int)port->number);
	if (port->is_public != CHOICE_UNSET)
		json_object_set_new(entry, "public", json_boolean(port->is_public == CHOICE_YES));
	if (port->keeps_prefix)
		json_object_set_new(entry, "prefix", json_string("keep"));
	return entry;
}

json_t *sandbox_spec_ports_to_json(const struct port_spec *ports, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, port_to_json(&ports[i]));
	return array;
}

json_t *sandbox_spec_starts_to_json(const struct start_spec *starts, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, start_spec_to_json(&starts[i]));
	return array;
}
