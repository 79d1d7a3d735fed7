/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller asks for becomes drafts: an entry of the record for each member, with all that its own row needs in
 * its `draft` until that row is made.
 */
#include "core/sandbox/member_draft.h"

#include "base/buf.h"
#include "core/engine/capability.h"
#include "core/engine/sandbox_state.h"
#include "core/template/template_options.h"
#include "core/template/templates_request.h"
#include "model/sandbox/member_default.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define PASSWORD_BYTES 16

static const char *text_in(const json_t *object, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && text[0] ? text : otherwise;
}

/* --- servers that are known --- */

static void give_postgres(json_t *own, int port, json_t *env);
static void give_redis(json_t *own, int port, json_t *env);
static void give_mysql(json_t *own, int port, json_t *env);

/* By how the name of a template or image begins, else by the port. Each gives others what they need to reach it. */
static const struct server {
	const char *name;
	int port;
	void (*give)(json_t *own, int port, json_t *env);
} servers[] = {
	{"postgres", 5432, give_postgres},
	{"redis", 6379, give_redis},
	{"valkey", 6379, give_redis},
	{"mysql", 3306, give_mysql},
	{"mariadb", 3306, give_mysql},
};

static const struct server *find_server(const char *template_name, int port)
{
	const char *last = strrchr(template_name, '/');
	const char *name = last ? last + 1 : template_name;

	for (size_t i = 0; i < array_len(servers); i++) {
		if (strncmp(name, servers[i].name, strlen(servers[i].name)) == 0)
			return &servers[i];
	}
	for (size_t i = 0; i < array_len(servers); i++) {
		if (port == servers[i].port)
			return &servers[i];
	}
	return NULL;
}

/* As a part of a URL; a new text. */
static char *encode(const char *text)
{
	struct buf buf = BUF_INIT(3 * 4096);

	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			buf_append(&buf, text, 1);
		else
			buf_printf(&buf, "%%%02X", (unsigned char)*text);
	}
	return buf_take_str(&buf);
}

/* Takes over the value. What is there already was asked for. */
static void give(json_t *env, const char *name, json_t *value)
{
	if (value && !json_object_get(env, name))
		json_object_set(env, name, value);
	json_decref(value);
}

/* A password that nobody chose is nobody's to guess. */
static const char *need_password(json_t *own, const char *name)
{
	unsigned char bytes[PASSWORD_BYTES];
	char text[2 * PASSWORD_BYTES + 1];

	if (!text_in(own, name, NULL)) {
		if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
			abort();
		for (size_t i = 0; i < sizeof(bytes); i++)
			snprintf(text + 2 * i, 3, "%02x", bytes[i]);
		json_object_set_new(own, name, json_string(text));
	}
	return text_in(own, name, "");
}

static void give_postgres(json_t *own, int port, json_t *env)
{
	const char *user = text_in(own, "POSTGRES_USER", "postgres");
	const char *password = need_password(own, "POSTGRES_PASSWORD");
	const char *database = text_in(own, "POSTGRES_DB", user);
	auto_free char *user_text = encode(user), *password_text = encode(password),
		       *database_text = encode(database);

	give(env, "DATABASE_URL",
		json_sprintf("postgresql://%s:%s@127.0.0.1:%d/%s", user_text, password_text, port,
			database_text));
	give(env, "PGHOST", json_string("127.0.0.1"));
	give(env, "PGPORT", json_sprintf("%d", port));
	give(env, "PGUSER", json_string(user));
	give(env, "PGPASSWORD", json_string(password));
	give(env, "PGDATABASE", json_string(database));
}

static void give_redis(json_t *own, int port, json_t *env)
{
	auto_free char *password = encode(text_in(own, "REDIS_PASSWORD", ""));

	give(env, "REDIS_URL",
		json_sprintf("redis://%s%s%s127.0.0.1:%d/0", password[0] ? ":" : "", password,
			password[0] ? "@" : "", port));
	give(env, "REDIS_HOST", json_string("127.0.0.1"));
	give(env, "REDIS_PORT", json_sprintf("%d", port));
}

static void give_mysql(json_t *own, int port, json_t *env)
{
	const char *user = text_in(own, "MYSQL_USER", "root");
	const char *password = need_password(
		own, strcmp(user, "root") == 0 ? "MYSQL_ROOT_PASSWORD" : "MYSQL_PASSWORD");
	const char *database = text_in(own, "MYSQL_DATABASE", "mysql");
	auto_free char *user_text = encode(user), *password_text = encode(password),
		       *database_text = encode(database);

	give(env, "DATABASE_URL",
		json_sprintf("mysql://%s:%s@127.0.0.1:%d/%s", user_text, password_text, port,
			database_text));
	give(env, "MYSQL_HOST", json_string("127.0.0.1"));
	give(env, "MYSQL_TCP_PORT", json_sprintf("%d", port));
}

/* What every member with a port is known by: BACKEND_HOST, BACKEND_PORT. */
static void give_place(const char *role, int port, json_t *env)
{
	char name[32], upper[16] = "";

	for (size_t i = 0; role[i] && i + 1 < sizeof(upper); i++)
		upper[i] = (char)toupper((unsigned char)role[i]);
	snprintf(name, sizeof(name), "%s_HOST", upper);
	give(env, name, json_string("127.0.0.1"));
	snprintf(name, sizeof(name), "%s_PORT", upper);
	give(env, name, json_sprintf("%d", port));
}

/* --- one --- */

/* The first port that its template tells of; 0: none. */
static int port_of_image(const json_t *image)
{
	const json_t *ports = json_object_get(json_object_get(image, "options"), "ports");

	if (json_array_size(ports) == 0)
		ports = json_object_get(image, "ports");
	return json_array_size(ports) > 0 ? sandbox_port_number(json_array_get(ports, 0)) : 0;
}

static json_t *health_of(const struct member_spec *spec, const json_t *image, int port)
{
	json_t *ready = json_object_get(json_object_get(image, "options"), "ready");
	json_t *usual = json_object_get(image, "health");

	if (spec->health.is_given)
		return member_health_to_json(&spec->health);
	if (ready)
		return json_deep_copy(ready);
	if (usual && !spec->command)
		return json_pack("{s:O}", "command", usual);
	return port ? json_pack("{s:i}", "port", port) : json_object();
}

/* Those who serve users usually need the ones who keep data. */
static json_t *depends_of(
	const struct member_spec *members, size_t count, const struct member_spec *spec)
{
	enum member_role role = spec ? member_role_parse(spec->role) : MEMBER_PRIMARY;
	json_t *list;

	if (spec && spec->depends_on.texts)
		return text_list_to_json(spec->depends_on);
	list = json_array();
	for (size_t i = 0; role < MEMBER_DATABASE && i < count; i++) {
		if (member_role_parse(members[i].role) >= MEMBER_DATABASE)
			json_array_append_new(list, json_string(members[i].role));
	}
	return list;
}

static uint64_t first_of(uint64_t asked, uint64_t usual, uint64_t otherwise)
{
	return asked ? asked : usual ? usual : otherwise;
}

static json_t *resources_of(
	const struct engine *engine, const struct resources *asked, const json_t *image)
{
	const struct resources *otherwise = &engine->config.defaults.resources;
	struct resources usual = template_options_resources(json_object_get(image, "options"));

	return json_pack("{s:I, s:I, s:I}", "cpu_millis",
		(json_int_t)first_of(asked->cpu_millis, usual.cpu_millis, otherwise->cpu_millis),
		"memory_bytes",
		(json_int_t)first_of(
			asked->memory_bytes, usual.memory_bytes, otherwise->memory_bytes),
		"pids", (json_int_t)first_of(asked->pids, usual.pids, otherwise->pids));
}

static int starts_of(
	const struct member_spec *spec, const json_t *image, json_t **ret_starts, struct err *err)
{
	const json_t *usual = json_object_get(json_object_get(image, "options"), "start");
	json_auto_t *starts = NULL;
	json_t *start;
	size_t i;

	if (spec->command)
		starts = json_pack("[o]", start_spec_to_json(&(struct start_spec){
						  .name = spec->role, .command = spec->command}));
	else if (json_array_size(usual) > 0)
		starts = json_deep_copy(usual);
	else if ((start = template_options_image_start(image)))
		starts = json_pack("[o]", start);
	else
		return err_explain(err, ERR_INVALID, "invalid_field",
			"say what it runs with `command`",
			"the template of the member %s starts nothing by itself", spec->role);
	json_array_foreach(starts, i, start)
	{
		if (spec->restart)
			json_object_set_new(start, "restart", json_string(spec->restart));
	}
	*ret_starts = json_incref(starts);
	return 0;
}

/* The entry of a member with its draft; 1: its template is not there yet. */
static int make_entry(struct engine *engine, const struct owner *owner,
	const struct sandbox_spec *sandbox, const struct member_spec *spec, json_t **ret_entry,
	char ret_job[ID_LEN + 1], struct err *err)
{
	const char *template_name = spec->template_name ? spec->template_name : "host";
	json_auto_t *image = NULL, *starts = NULL, *env = text_map_to_json(spec->env);
	const struct server *server;
	int port,
		r = ret_job ? templates_resolve(engine, owner, template_name, &image, ret_job, err)
			    : templates_look(engine, owner, template_name, &image, err);

	if (r == 0)
		r = starts_of(spec, image, &starts, err);
	if (r != 0)
		return r;
	port = spec->port ? spec->port : port_of_image(image);
	if (!port && spec->health.port)
		port = spec->health.port;
	server = find_server(template_name, port);
	if (!port && server)
		port = server->port;
	*ret_entry = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:s, s:{s:s, s:O, s:O, s:o, s:O, "
			       "s:o}}",
		"role", spec->role, "id", "", "template", template_name, "port", port, "depends_on",
		depends_of(sandbox->members, sandbox->member_count, spec), "health",
		health_of(spec, image, port), "restart",
		spec->restart ? spec->restart : member_restarts[0], "draft", "template",
		template_name, "image", image, "env", env, "asked", json_copy(env), "start", starts,
		"resources", resources_of(engine, &spec->resources, image));
	return 0;
}

static const struct member_spec *find_spec(const struct sandbox_spec *spec, enum member_role role)
{
	for (size_t i = 0; i < spec->member_count; i++) {
		if (member_role_parse(spec->members[i].role) == role)
			return &spec->members[i];
	}
	return NULL;
}

static bool is_served(const json_t *entries, int port)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry)
	{
		if (json_integer_value(json_object_get(entry, "port")) == port)
			return true;
	}
	return false;
}

/* The first of the ports with a preview that none of its members serves on; 0: none. */
static int own_port(const struct sandbox_record *draft, const json_t *entries)
{
	json_t *port;
	size_t i;

	json_array_foreach(draft->ports, i, port)
	{
		if (!is_served(entries, sandbox_port_number(port)))
			return sandbox_port_number(port);
	}
	return 0;
}

/* The sandbox itself among its members, which are the entries. */
static json_t *make_primary(
	const struct sandbox_spec *spec, const struct sandbox_record *draft, const json_t *entries)
{
	const struct member_spec *own = find_spec(spec, MEMBER_PRIMARY);
	static const struct member_health none = {0};
	int port = own && own->port ? own->port : own_port(draft, entries);

	return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:s}", "role",
		member_roles[MEMBER_PRIMARY], "id", "", "template", draft->template_name, "port",
		port, "depends_on", depends_of(spec->members, spec->member_count, own), "health",
		member_health_to_json(own ? &own->health : &none), "restart", member_restarts[0]);
}

/* --- all --- */

static json_t *env_of(json_t *entry)
{
	return json_object_get(json_object_get(entry, "draft"), "env");
}

/* What the sandbox has of its members is known as theirs: one that is made of its files, without them, has not. */
static void give_primary(struct sandbox_record *draft, json_t *shared)
{
	json_t *entry = member_spec_find(draft->members, member_roles[MEMBER_PRIMARY]);
	json_t *given = json_object_get(entry, "given"), *value;
	const char *name;

	if (!given) {
		given = json_object();
		json_object_set_new(entry, "given", given);
	}
	json_object_foreach(shared, name, value)
	{
		if (!json_object_get(draft->env, name))
			json_object_set(given, name, value);
	}
	json_object_update_missing(draft->env, given);
}

/* Everybody learns where the others are, the sandbox too. */
static void share_env(struct sandbox_record *draft)
{
	json_auto_t *shared = json_object();
	json_t *entry;
	size_t i;

	json_array_foreach(draft->members, i, entry)
	{
		const char *role = json_string_value(json_object_get(entry, "role"));
		int port = (int)json_integer_value(json_object_get(entry, "port"));
		const struct server *server =
			find_server(json_string_value(json_object_get(entry, "template")), port);

		if (!port || !env_of(entry))
			continue;
		if (server)
			server->give(env_of(entry), port, shared);
		give_place(role, port, shared);
	}
	json_array_foreach(draft->members, i, entry)
	{
		if (env_of(entry))
			json_object_update_missing(env_of(entry), shared);
	}
	give_primary(draft, shared);
}

/* The sandbox, which is there already, depends on those that come. */
static void depend_on(json_t *primary, const struct sandbox_spec *spec)
{
	json_auto_t *more = depends_of(spec->members, spec->member_count, NULL);
	json_t *list = json_object_get(primary, "depends_on"), *role, *known;
	size_t i, j;

	json_array_foreach(more, i, role)
	{
		bool is_known = false;

		json_array_foreach(list, j, known) is_known |= json_equal(role, known);
		if (!is_known)
			json_array_append(list, role);
	}
}

int member_draft(struct engine *engine, const struct owner *owner, const struct sandbox_spec *spec,
	struct sandbox_record *draft, char ret_job[ID_LEN + 1], struct err *err)
{
	json_auto_t *entries = json_deep_copy(draft->members);
	json_t *primary = member_spec_find(entries, member_roles[MEMBER_PRIMARY]);
	uint64_t more_disk = 0;
	int r = capability_need(engine->config.driver, DRIVER_MEMBERS, err);

	for (size_t i = 0; r == 0 && i < spec->member_count; i++) {
		const struct member_spec *member = &spec->members[i];
		json_t *entry = NULL;

		if (member_role_parse(member->role) == MEMBER_PRIMARY ||
			member_spec_find(entries, member->role))
			continue;
		r = make_entry(engine, owner, spec, member, &entry, ret_job, err);
		if (r == 0)
			json_array_append_new(entries, entry);
		more_disk += member->resources.disk_bytes;
	}
	if (r != 0)
		return r;
	if (primary)
		depend_on(primary, spec);
	else
		json_array_append_new(entries, make_primary(spec, draft, entries));
	r = member_spec_sort(entries, err);
	if (r < 0)
		return r;
	json_decref(draft->members);
	draft->members = json_incref(entries);
	if (draft->resources.disk_bytes)
		draft->resources.disk_bytes += more_disk;
	share_env(draft);
	return 0;
}

int member_draft_usual(struct engine *engine, const struct owner *owner,
	const struct sandbox_spec *spec, const json_t *image, struct sandbox_record *draft,
	char ret_job[ID_LEN + 1], struct err *err)
{
	const json_t *usual = json_object_get(json_object_get(image, "options"), "members");
	auto_free struct member_defaults *defaults = NULL;
	struct sandbox_spec with = *spec;

	if (json_array_size(usual) == 0)
		return 0;
	defaults = mem_new(sizeof(*defaults));
	member_default_read(usual, defaults);
	with.members = defaults->members;
	with.member_count = defaults->count;
	return member_draft(engine, owner, &with, draft, ret_job, err);
}

/* --- what they depend on --- */

static void copy_member(json_t *key, const json_t *entry, const char *name)
{
	json_t *value = json_object_get(entry, name);

	if (value)
		json_object_set(key, name, value);
}

json_t *member_draft_key(const json_t *entries)
{
	static const char *const of_all[] = {"role", "depends_on", "health", "restart"},
				 *const of_image[] = {"version", "stack", "options"};
	json_t *list = json_array(), *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry)
	{
		const json_t *draft = json_object_get(entry, "draft");
		const json_t *image = json_object_get(draft, "image");
		json_t *key = json_object();

		for (size_t j = 0; j < array_len(of_all); j++)
			copy_member(key, entry, of_all[j]);
		json_array_append_new(list, key);
		/* The port of the sandbox itself may be another: nobody is told of it before. */
		if (!draft)
			continue;
		copy_member(key, entry, "port");
		copy_member(key, entry, "template");
		copy_member(key, draft, "asked");
		copy_member(key, draft, "start");
		for (size_t j = 0; j < array_len(of_image); j++)
			copy_member(key, image, of_image[j]);
	}
	return list;
}
