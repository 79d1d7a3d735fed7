/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_options.h"

#include "base/buf.h"
#include "model/sandbox/member_default.h"
#include "model/template/template.h"

#include <errno.h>
#include <string.h>

static int refuse(const char *field, const char *why, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "field %s %s", field, why);
}

/* "name", "1000", and both with ":group". */
static bool is_user(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strspn(text, allowed);

	if (text[len] == ':' && len > 0)
		return text[len + 1] && !text[len + 1 + strspn(text + len + 1, allowed)];
	return !text[len];
}

static bool is_absolute(const char *path)
{
	return path[0] == '/';
}

/* The sandbox itself is what the template says. */
static int check_members(const struct sandbox_spec *spec, struct err *err)
{
	static const struct resources none = {0};

	for (size_t i = 0; i < spec->member_count; i++) {
		const struct member_spec *member = &spec->members[i];

		if (member_role_parse(member->role) == MEMBER_PRIMARY &&
			(member->template_name || member->command || member->env.count > 0 ||
				memcmp(&member->resources, &none, sizeof(none)) != 0))
			return refuse("members",
				"of a template say of primary its port, depends_on, health and "
				"restart alone",
				err);
	}
	return 0;
}

int template_options_check(const struct template_options *options, struct err *err)
{
	enum template_profile profile;

	if (options->security && options->security[0] &&
		template_profile_parse(options->security, &profile) < 0)
		return refuse("security", "must be strict, default or browser", err);
	if (options->skeleton && options->skeleton[0] && !is_absolute(options->skeleton))
		return refuse("skeleton", "must be an absolute path", err);
	if (options->user && !is_user(options->user))
		return refuse("user", "must be a name or a number, with or without :group", err);
	if (options->workdir && options->workdir[0] && !is_absolute(options->workdir))
		return refuse("workdir", "must be an absolute path", err);
	if (options->has_ready && !options->unsets_ready &&
		!options->ready_command == !options->ready_port)
		return refuse("ready", "must have either command or port", err);
	if (check_members(options->spec, err) < 0)
		return -EINVAL;
	return sandbox_spec_check(options->spec, err);
}

static json_t *resources_to_json(const struct resources *resources)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "cpu_millis", (json_int_t)resources->cpu_millis,
		"memory_bytes", (json_int_t)resources->memory_bytes, "disk_bytes",
		(json_int_t)resources->disk_bytes, "pids", (json_int_t)resources->pids);
}

static json_t *network_to_json(const struct network_spec *network)
{
	json_t *object = json_object();

	if (network->mode)
		json_object_set_new(object, "mode", json_string(network->mode));
	if (network->allow.texts)
		json_object_set_new(object, "allow", text_list_to_json(network->allow));
	return object;
}

void template_options_set(json_t *kept, const struct template_options *options)
{
	const struct sandbox_spec *spec = options->spec;

	if (options->has_env)
		json_object_set_new(kept, "env", text_map_to_json(spec->env));
	if (options->has_resources)
		json_object_set_new(kept, "resources", resources_to_json(&spec->resources));
	if (options->has_ports)
		json_object_set_new(
			kept, "ports", sandbox_spec_ports_to_json(spec->ports, spec->port_count));
	if (options->unsets_network)
		json_object_del(kept, "network");
	else if (options->has_network)
		json_object_set_new(kept, "network", network_to_json(&spec->network));
	if (options->has_start)
		json_object_set_new(kept, "start",
			sandbox_spec_starts_to_json(spec->starts, spec->start_count));
	if (options->user)
		json_object_set_new(kept, "user", json_string(options->user));
	if (options->workdir)
		json_object_set_new(kept, "workdir", json_string(options->workdir));
	if (options->unsets_ready)
		json_object_del(kept, "ready");
	else if (options->has_ready)
		json_object_set_new(kept, "ready",
			options->ready_command
				? json_pack("{s:s}", "command", options->ready_command)
				: json_pack("{s:I}", "port", (json_int_t)options->ready_port));
	if (options->pool_size >= 0)
		json_object_set_new(
			kept, "pool", json_pack("{s:I}", "size", (json_int_t)options->pool_size));
	if (options->has_members)
		json_object_set_new(
			kept, "members", member_default_to_json(spec->members, spec->member_count));
	if (options->languages.texts)
		json_object_set_new(kept, "languages", text_list_to_json(options->languages));
	if (options->security)
		json_object_set_new(kept, "security", json_string(options->security));
	if (options->skeleton)
		json_object_set_new(kept, "skeleton", json_string(options->skeleton));
	if (options->starts_image != CHOICE_UNSET)
		json_object_set_new(
			kept, "start_image", json_boolean(options->starts_image == CHOICE_YES));
	if (options->is_pinned != CHOICE_UNSET)
		json_object_set_new(kept, "pinned", json_boolean(options->is_pinned == CHOICE_YES));
}

/* A text that says something goes before that of the image. */
static void replace_text(json_t *image, const json_t *options, const char *name)
{
	json_t *value = json_object_get(options, name);

	if (json_string_length(value) > 0)
		json_object_set(image, name, value);
}

void template_options_fill_image(json_t *image)
{
	const json_t *options = json_object_get(image, "options");
	json_t *env = json_object_get(options, "env");

	if (!options)
		return;
	if (env && json_object_get(image, "env"))
		json_object_update(json_object_get(image, "env"), env);
	replace_text(image, options, "user");
	replace_text(image, options, "workdir");
	replace_text(image, options, "security");
}

const char *template_options_skeleton(const json_t *options)
{
	const char *path = json_string_value(json_object_get(options, "skeleton"));

	return path ? path : TEMPLATE_SKELETON;
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

struct resources template_options_resources(const json_t *options)
{
	const json_t *kept = json_object_get(options, "resources");

	return (struct resources){.cpu_millis = number(kept, "cpu_millis"),
		.memory_bytes = number(kept, "memory_bytes"),
		.disk_bytes = number(kept, "disk_bytes"),
		.pids = number(kept, "pids")};
}

static void fill(uint64_t *place, uint64_t asked, uint64_t usual)
{
	if (!asked && usual)
		*place = usual;
}

/* Ports of an image are numbers, as many as it likes. */
void template_options_fill_ports(const json_t *image, struct sandbox_record *draft)
{
	const json_t *given = json_object_get(json_object_get(image, "options"), "ports"), *port;
	size_t i;

	if (json_array_size(draft->ports) > 0)
		return;
	if (!given)
		given = json_object_get(image, "ports");
	json_array_foreach((json_t *)given, i, port)
	{
		if (i < SANDBOX_PORTS_MAX)
			json_array_append(draft->ports, (json_t *)port);
	}
}

/* --- the image's own program --- */

/* As a word of a shell's line. */
static void quote(struct buf *line, const char *text)
{
	buf_append(line, "'", 1);
	for (; *text; text++) {
		if (*text == '\'')
			buf_append(line, "'\\''", 4);
		else
			buf_append(line, text, 1);
	}
	buf_append(line, "'", 1);
}

/* What an image is made to run, as a start command in the form of a record; NULL if it does not say, or too much. */
json_t *template_options_image_start(const json_t *image)
{
	static const char *const parts[] = {"entrypoint", "command"};
	struct buf line = BUF_INIT(SPEC_START_COMMAND_MAX);
	auto_free char *text = NULL;
	bool is_any = false;
	json_t *word;
	size_t i;

	buf_append(&line, "exec", 4);
	for (size_t part = 0; part < array_len(parts); part++) {
		json_array_foreach(json_object_get(image, parts[part]), i, word)
		{
			buf_append(&line, " ", 1);
			quote(&line, json_string_value(word));
			is_any = true;
		}
	}
	if (!is_any || line.failed) {
		buf_fini(&line);
		return NULL;
	}
	text = buf_take_str(&line);
	return start_spec_to_json(
		&(struct start_spec){.name = TEMPLATE_START_IMAGE, .command = text});
}

void template_options_renew_start(struct sandbox_record *record, const json_t *image)
{
	json_auto_t *before = template_options_image_start(record->image),
		    *after = template_options_image_start(image);
	json_t *start;
	size_t i;

	if (!before || !after)
		return;
	json_array_foreach(record->start, i, start)
	{
		if (json_equal(start, before)) {
			json_array_set(record->start, i, after);
			return;
		}
	}
}

static void add_start(const json_t *options, const json_t *image, json_t *starts)
{
	json_t *start = json_is_true(json_object_get(options, "start_image"))
				? template_options_image_start(image)
				: NULL;

	if (start)
		json_array_insert_new(starts, 0, start);
}

void template_options_fill_draft(
	const json_t *image, const struct sandbox_spec *spec, struct sandbox_record *draft)
{
	const json_t *options = json_object_get(image, "options");
	const json_t *start = json_object_get(options, "start");
	struct resources usual = template_options_resources(options);

	fill(&draft->resources.cpu_millis, spec->resources.cpu_millis, usual.cpu_millis);
	fill(&draft->resources.memory_bytes, spec->resources.memory_bytes, usual.memory_bytes);
	fill(&draft->resources.disk_bytes, spec->resources.disk_bytes, usual.disk_bytes);
	fill(&draft->resources.pids, spec->resources.pids, usual.pids);
	if (spec->port_count == 0)
		template_options_fill_ports(image, draft);
	if (spec->start_count == 0 && start) {
		json_decref(draft->start);
		draft->start = json_deep_copy(start);
	}
	if (spec->start_count == 0)
		add_start(options, image, draft->start);
}

bool template_options_network(
	const json_t *image, const char *texts[], struct network_spec *ret_network)
{
	const json_t *network = json_object_get(json_object_get(image, "options"), "network");
	const json_t *allow = json_object_get(network, "allow"), *rule;
	size_t i;

	if (!network)
		return false;
	json_array_foreach((json_t *)allow, i, rule) texts[i] = json_string_value(rule);
	*ret_network =
		(struct network_spec){.mode = json_string_value(json_object_get(network, "mode")),
			.allow = {allow ? texts : NULL, json_array_size(allow)}};
	return true;
}
