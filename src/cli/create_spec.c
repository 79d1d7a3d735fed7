/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create_spec.h"

#include "base/format.h"
#include "base/number.h"
#include "base/similar.h"
#include "cli/cli.h"
#include "cli/remote/listing.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output/job_bars.h"
#include "cli/text/human.h"

#include <errno.h>
#include <string.h>

#define LOOK_MS 50
#define SIZE_LEAST                                                                                 \
	(1u << 20) /* no limit is lower: a number below was meant in other units than bytes */
#define AT(field) offsetof(struct create_spec, field)

const struct option create_spec_options[] = {
	{OPTION_TEXT, 0, "id", "ID", "use this id: 26 digits and small letters", AT(id)},
	{OPTION_TEXT, 0, "name", "NAME", "a name that stands wherever its id may", AT(name)},
	{OPTION_TEXT, 't', "template", "NAME", "what the sandbox starts from", AT(template)},
	{OPTION_TEXT, 0, "snapshot", "ID", "start with the files and settings of a snapshot",
		AT(snapshot)},
	{OPTION_TEXT, 0, "project", "NAME", "the project it belongs to", AT(project)},
	{OPTION_TEXT, 0, "session", "NAME", "one more sandbox of the project, for a chat, say",
		AT(session)},
	{OPTION_TEXT, 0, "cpu", "CORES", "processor limit, such as 0.5 or 2", AT(cpu)},
	{OPTION_TEXT, 0, "memory", "SIZE", "memory limit, such as 512Mi", AT(memory)},
	{OPTION_TEXT, 0, "disk", "SIZE", "disk limit, such as 2Gi", AT(disk)},
	{OPTION_NUMBER, 0, "pids", "N", "limit of processes and threads", AT(pids)},
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated", AT(env)},
	{OPTION_LIST, 'p', "port", "N[:HOW]",
		"preview this port; HOW is public, private, keep or strip; may be repeated",
		AT(ports)},
	{OPTION_LIST, 'l', "label", "K=V", "set a label; may be repeated", AT(labels)},
	{OPTION_CHOICE, 0, "network", "MODE", "none, allowlist or internet", AT(network),
		"none allowlist internet"},
	{OPTION_LIST, 0, "allow", "NAME",
		"a name, address or network that may be reached (means --network allowlist unless "
		"--network is given); may be repeated",
		AT(allow)},
	{OPTION_LIST, 0, "secret", "NAME",
		"a secret that its requests to http://NAME.internal are given; may be repeated",
		AT(secrets)},
	{OPTION_LIMIT, 0, "idle-timeout", "TIME", "stop after so long without use: 30m, or never",
		AT(idle_timeout)},
	{OPTION_LIMIT, 0, "lifetime", "TIME", "end after so long in any case: 8h, or never",
		AT(lifetime)},
	{OPTION_FLAG, 0, "public", NULL, "let anyone open the previews", AT(is_public)},
	{OPTION_TEXT, 0, "start", "LINE",
		"run this whenever the sandbox starts, and again when it fails", AT(start)},
	{OPTION_FLAG, 0, "start-env", NULL,
		"if it was made before it was asked for, begin its start commands anew with --env",
		AT(has_start_env)},
	{OPTION_LIST, 0, "member", "ROLE=NAME",
		"run this template beside it as database, cache, backend or frontend; or JSON; may "
		"be repeated",
		AT(members)},
	DEPENDENCY_SPEC_OPTIONS(AT(dependencies)),
	{OPTION_END},
};

int create_spec_pairs(
	const struct option_list *list, const char *what, json_t **ret, struct err *err)
{
	json_auto_t *object = json_object();

	for (size_t i = 0; i < list->count; i++) {
		const char *equals = strchr(list->items[i], '=');
		auto_free char *name = NULL;
		json_t *value;

		if (!equals || equals == list->items[i])
			return err_set(err, ERR_INVALID, "%s: \"%s\" is not of the form NAME=VALUE",
				what, list->items[i]);
		name = mem_printf("%.*s", (int)(equals - list->items[i]), list->items[i]);
		value = json_string(equals + 1);
		if (!value || json_object_set_new(object, name, value) < 0)
			return err_set(err, ERR_INVALID, "%s: the value of %s is not UTF-8 text",
				what, name);
	}
	*ret = json_incref(object);
	return 0;
}

static int add_pairs(json_t *body, const char *field, const struct option_list *list,
	const char *what, struct err *err)
{
	json_t *pairs;
	int r;

	if (list->count == 0)
		return 0;
	r = create_spec_pairs(list, what, &pairs, err);
	if (r < 0)
		return r;
	json_object_set_new(body, field, pairs);
	return 0;
}

static int add_text(json_t *body, const char *field, const char *text, struct err *err)
{
	json_t *value = text ? json_string(text) : NULL;

	if (!text)
		return 0;
	if (!value)
		return err_set(err, ERR_INVALID, "--%s is not UTF-8 text", field);
	json_object_set_new(body, field, value);
	return 0;
}

static int add_size(json_t *resources, const char *field, const char *text, struct err *err)
{
	uint64_t bytes;

	if (!text)
		return 0;
	if (human_parse_bytes(text, &bytes) < 0)
		return err_explain(err, ERR_INVALID, NULL, "write 512Mi, 2Gi, or a number of bytes",
			"--%s: \"%s\" is not a size", field, text);
	if (bytes < SIZE_LEAST && !text[strspn(text, "0123456789")])
		return err_explain(err, ERR_INVALID, NULL,
			"give a unit: Mi or Gi behind the number",
			"--%s: %s was read as %s bytes, and that is too little", field, text, text);
	/* Ki, Mi, Gi go as they are, so that the answer shows what was asked for. */
	if (text[strlen(text) - 1] == 'i')
		return add_text(resources, field, text, err);
	json_object_set_new(resources, field, json_integer((json_int_t)bytes));
	return 0;
}

static int add_cpu(json_t *resources, const char *text, struct err *err)
{
	char *end;
	double cores;

	if (!text)
		return 0;
	cores = strtod(text, &end);
	/* The set of characters keeps "inf", "nan" and hexadecimal out. */
	if (text[strspn(text, "0123456789.")] || *end || end == text || cores <= 0)
		return err_explain(err, ERR_INVALID, NULL,
			"write a number of cores, such as 0.5 or 2",
			"--cpu: \"%s\" is not a number of cores", text);
	json_object_set_new(resources, "cpu",
		cores == (double)(int)cores ? json_integer((int)cores) : json_real(cores));
	return 0;
}

static int add_resources(json_t *body, const struct create_spec *spec, struct err *err)
{
	json_auto_t *resources = json_object();
	int r = add_cpu(resources, spec->cpu, err);

	if (r == 0)
		r = add_size(resources, "memory", spec->memory, err);
	if (r == 0)
		r = add_size(resources, "disk", spec->disk, err);
	if (r < 0)
		return r;
	if (spec->pids.is_set)
		json_object_set_new(resources, "pids", json_integer((json_int_t)spec->pids.value));
	if (json_object_size(resources) > 0)
		json_object_set(body, "resources", resources);
	return 0;
}

/* One word behind the number of a port. */
static int set_port_word(json_t *port, const char *word, size_t len)
{
	static const struct {
		const char *word, *field;
		bool is_true;
		const char *text;
	} words[] = {{"public", "public", true}, {"private", "public", false},
		{"keep", "prefix", .text = "keep"}, {"strip", "prefix", .text = "strip"}};

	for (size_t i = 0; i < array_len(words); i++) {
		if (strlen(words[i].word) != len || memcmp(words[i].word, word, len) != 0)
			continue;
		json_object_set_new(port, words[i].field,
			words[i].text ? json_string(words[i].text)
				      : json_boolean(words[i].is_true));
		return 0;
	}
	return -EINVAL;
}

/* "3000", or "3000:public,keep". */
static int read_port(const char *text, json_t **ret_port, struct err *err)
{
	json_auto_t *port = json_object();
	size_t len = strcspn(text, ":");
	auto_free char *digits = mem_printf("%.*s", (int)len, text);
	const char *word = text + len;
	uint64_t number;

	if (number_parse(digits, 1, 65535, &number) < 0)
		return err_set(err, ERR_INVALID, "--port: \"%s\" is not a port", text);
	for (; *word; word += len) {
		word++; /* the separator */
		len = strcspn(word, ",");
		if (number_parse(word, 1, 65535, &number) == 0)
			return err_explain(err, ERR_INVALID, NULL,
				"name the port inside alone; \"sandlot port-forward ID 8080:80\" "
				"makes one of this machine of it",
				"--port: \"%s\": a preview has an address, and no port here", text);
		if (set_port_word(port, word, len) < 0)
			return err_set(err, ERR_INVALID,
				"--port: behind the number stands public, private, keep or strip, "
				"not \"%.*s\"",
				(int)len, word);
	}
	json_object_set_new(port, "port", json_integer((json_int_t)number));
	*ret_port = json_incref(json_object_size(port) > 1 ? port : json_object_get(port, "port"));
	return 0;
}

static int add_ports(json_t *body, const struct option_list *ports, struct err *err)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < ports->count; i++) {
		json_t *port = NULL;
		int r = read_port(ports->items[i], &port, err);

		if (r < 0)
			return r;
		json_array_append_new(list, port);
	}
	if (ports->count > 0)
		json_object_set(body, "ports", list);
	return 0;
}

static int add_list(json_t *network, const char *field, const struct option_list *list,
	const char *what, struct err *err)
{
	json_t *items = json_array();

	for (size_t i = 0; i < list->count; i++) {
		if (json_array_append_new(items, json_string(list->items[i])) < 0) {
			json_decref(items);
			return err_set(err, ERR_INVALID, "%s is not UTF-8 text", what);
		}
	}
	if (list->count > 0)
		json_object_set(network, field, items);
	json_decref(items);
	return 0;
}

int create_spec_network(const char *mode, const struct option_list *allow,
	const struct option_list *secrets, json_t *body, struct err *err)
{
	json_auto_t *network = json_object();
	int r;

	if (mode)
		json_object_set_new(network, "mode", json_string(mode));
	r = add_list(network, "allow", allow, "--allow", err);
	if (r == 0)
		r = add_list(network, "secrets", secrets, "--secret", err);
	if (r == 0 && json_object_size(network) > 0)
		json_object_set(body, "network", network);
	return r;
}

static int add_network(json_t *body, const struct create_spec *spec, struct err *err)
{
	const char *mode = spec->network;

	if (spec->allow.count > 0 && mode && strcmp(mode, "none") == 0)
		return err_set(err, ERR_INVALID, "--allow does not go with --network %s", mode);
	if (!mode && spec->allow.count > 0)
		mode = "allowlist";
	return create_spec_network(mode, &spec->allow, &spec->secrets, body, err);
}

int create_spec_limit(
	json_t *body, const char *field, const struct option_number *number, struct err *err)
{
	if (!number->is_set)
		return 0;
	if (number->value % 1000 != 0)
		return err_set(err, ERR_INVALID, "%s is counted in whole seconds", field);
	json_object_set_new(body, field,
		number->is_never ? json_null() : json_integer((json_int_t)(number->value / 1000)));
	return 0;
}

static int add_dependencies(json_t *body, const struct dependency_spec *spec, struct err *err)
{
	json_t *packages = NULL;
	int r = dependency_spec_body(spec, false, &packages, err);

	if (r == 0 && packages)
		json_object_set_new(body, "dependencies", packages);
	return r;
}

/* "database=postgres15", or the object of the API. */
static json_t *read_member(const char *text)
{
	size_t len = strcspn(text, "=");
	json_t *role;

	if (text[0] == '{')
		return json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	role = text[len] && len > 0 ? json_stringn(text, len) : NULL;
	return role ? json_pack("{s:o, s:s}", "role", role, "template", text + len + 1) : NULL;
}

static int add_members(json_t *body, const struct option_list *members, struct err *err)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < members->count; i++) {
		if (json_array_append_new(list, read_member(members->items[i])) < 0)
			return err_set(err, ERR_INVALID,
				"--member: \"%s\" is neither ROLE=TEMPLATE nor a JSON object",
				members->items[i]);
	}
	if (members->count > 0)
		json_object_set(body, "members", list);
	return 0;
}

int create_spec_await_packages(
	struct client *client, const struct create_spec *spec, const char *id, struct err *err)
{
	if (dependency_spec_is_empty(&spec->dependencies))
		return 0;
	return dependency_spec_await(client, id, NULL, err);
}

int create_spec_body(const struct create_spec *spec, json_t **ret, struct err *err)
{
	json_auto_t *body = json_object();
	int r;

	if (spec->id && !resolve_is_whole(spec->id))
		return err_set(err, ERR_INVALID,
			"--id: \"%s\" is not an id of 26 digits and small letters", spec->id);
	if (spec->name && !resolve_is_name(spec->name))
		return err_explain(err, ERR_INVALID, NULL,
			"use up to 40 small letters, digits and hyphens, with a letter first; 26 "
			"of them without a hyphen would be an id",
			"--name: \"%s\" cannot be the name of a sandbox", spec->name);
	r = add_text(body, "id", spec->id, err);
	if (r == 0)
		r = add_text(body, "name", spec->name, err);
	if (r == 0)
		r = add_text(body, "template", spec->template, err);
	if (r == 0)
		r = add_text(body, "snapshot", spec->snapshot, err);
	if (r == 0)
		r = add_text(body, "project", spec->project, err);
	if (r == 0)
		r = add_text(body, "session", spec->session, err);
	if (r == 0)
		r = add_resources(body, spec, err);
	if (r == 0)
		r = add_pairs(body, "env", &spec->env, "--env", err);
	if (r == 0)
		r = add_ports(body, &spec->ports, err);
	if (r == 0)
		r = add_pairs(body, "labels", &spec->labels, "--label", err);
	if (r == 0)
		r = add_network(body, spec, err);
	if (r == 0)
		r = create_spec_limit(body, "idle_timeout_s", &spec->idle_timeout, err);
	if (r == 0)
		r = create_spec_limit(body, "lifetime_s", &spec->lifetime, err);
	if (r == 0)
		r = add_text(body, "start", spec->start, err);
	if (r == 0)
		r = add_dependencies(body, &spec->dependencies, err);
	if (r == 0)
		r = add_members(body, &spec->members, err);
	if (r < 0)
		return r;
	if (spec->has_start_env)
		json_object_set_new(body, "start_env", json_true());
	if (spec->is_public)
		json_object_set_new(body, "private", json_false());
	*ret = json_incref(body);
	return 0;
}

void create_spec_warn(const json_t *sandbox)
{
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(sandbox, "warnings"), i, warning)
	{
		if (json_is_string(warning))
			cli_note("%s", json_string_value(warning));
	}
}

/*
 * Without waiting, so that there is something to show while an image is fetched, and a name to remove it by. Members must
 * have their templates before there is a sandbox: then it is waited for.
 */
static int send_body(struct client *client, json_t *body, json_t **ret_document, struct err *err)
{
	struct client_call call = {
		.method = "POST", .path = "/v1/sandboxes", .body = body, .is_create = true};
	int r;

	json_object_set_new(body, "wait", json_false());
	r = client_json(client, &call, ret_document, err);
	if (r == 0 || strcmp(err->code, "members_wait") != 0)
		return r;
	cli_note("templates of its members are not there yet, and are made first");
	json_object_del(body, "wait");
	return client_json(client, &call, ret_document, err);
}

int create_spec_send(struct client *client, const struct create_spec *spec,
	char ret_id[RESOLVE_ID_LEN + 1], json_t **ret_document, struct err *err)
{
	json_auto_t *body = NULL;
	json_auto_t *document = NULL;
	const char *id;
	int r = create_spec_body(spec, &body, err);

	if (r < 0)
		return r;
	r = send_body(client, body, &document, err);
	if (r < 0)
		return r;
	id = json_string_value(json_object_get(document, "id"));
	if (!id || !resolve_is_whole(id))
		return err_set(err, ERR_INTERNAL, "%s created a sandbox and did not name it",
			client_url(client));
	memcpy(ret_id, id, RESOLVE_ID_LEN + 1);
	create_spec_warn(document);
	*ret_document = json_incref(document);
	return 0;
}

void create_spec_suggest(struct client *client, const struct create_spec *spec, struct err *err)
{
	char remedy[sizeof(err->remedy)];
	unsigned least = SIMILAR_MAX + 1;
	json_auto_t *templates = NULL;
	const char *best = NULL;
	json_t *one;
	struct err ignored;
	size_t i;

	if (!spec->template ||
		listing_fetch_all(client, "/v1/templates", "templates", &templates, &ignored) < 0)
		return;
	json_array_foreach(templates, i, one)
	{
		const char *name = cli_text(one, "name");
		unsigned distance = similar_distance(name, spec->template);

		if (distance < least && distance < strlen(name)) {
			least = distance;
			best = name;
		}
	}
	/* One that is there failed for another reason. */
	if (!best || least == 0 || strstr(err->remedy, best))
		return;
	snprintf(remedy, sizeof(remedy), "did you mean the template \"%s\"?%s%s", best,
		err->remedy[0] ? " else: " : "", err->remedy);
	format_end_at_word(remedy, sizeof(remedy));
	memcpy(err->remedy, remedy, sizeof(remedy));
}

static bool is_creating(const json_t *sandbox)
{
	return strcmp(cli_text(sandbox, "status"), "creating") == 0;
}

/* After its image is there it is made within a moment. */
static int await_made(struct client *client, json_t **document, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", cli_text(*document, "id"));
	struct interrupt *interrupt = client_interrupt(client);
	int r = 0;

	interrupt_watch(interrupt, true);
	while (r >= 0 && is_creating(*document)) {
		json_t *now;

		r = client_json(
			client, &(struct client_call){.method = "GET", .path = path}, &now, err);
		if (r < 0)
			break;
		json_decref(*document);
		*document = now;
		if (is_creating(now))
			r = interrupt_wait(interrupt, -1, 0, LOOK_MS, err);
	}
	interrupt_watch(interrupt, false);
	return r < 0 ? r : 0;
}

int create_spec_await(struct client *client, json_t **document, struct err *err)
{
	bool has_failed = strcmp(cli_text(*document, "status"), "error") == 0;
	int r = 0;

	/* Of one that failed at once its job says why, and what to do. */
	if (is_creating(*document) || (has_failed && cli_text(*document, "job")[0]))
		r = job_bars_wait(client, cli_text(*document, "job"), err);
	if (r == 0)
		r = await_made(client, document, err);
	if (r == 0 && strcmp(cli_text(*document, "status"), "error") == 0)
		r = err_set(err, ERR_UNAVAILABLE, "%s", cli_text(*document, "error_message"));
	return r;
}
