/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/environment.h"

#include "core/engine/sandbox_state.h"
#include "core/project/project_defaults.h"
#include "model/sandbox/network_default.h"
#include "wire/egress.h"

#include <stdlib.h>
#include <string.h>

/* What a user installed comes first; /opt/sandlot/bin is made by keeper/rootfs/host_template.c. */
#define SYSTEM_PATH  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_PATH "/opt/sandlot/bin:" SYSTEM_PATH
#define DEFAULT_TERM "xterm-256color"
#define NO_PROXY     "localhost,127.0.0.1,::1,0.0.0.0,sandbox,.localhost"

/* For programs that ask for one by name and so spare themselves the question for it. */
static void add_proxy(json_t *env, const json_t *network)
{
	static const char *const names[] = {
		"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"};
	auto_free char *url = mem_printf("http://127.0.0.1:%d", EGRESS_PROXY_PORT);

	if (!network_leads_out(network))
		return;
	for (size_t i = 0; i < array_len(names); i++)
		json_object_set_new(env, names[i], json_string(url));
	json_object_set_new(env, "no_proxy", json_string(NO_PROXY));
	json_object_set_new(env, "NO_PROXY", json_string(NO_PROXY));
}

/*
 * The system of a sandbox is read-only or not its user's: packages go into the home directory. pip does so by
 * itself where it may not write, but Debian's python forbids that too (PEP 668) unless it is told.
 */
static void add_packages(json_t *env, const char *home)
{
	json_object_set_new(env, "PATH", json_sprintf("%s/.local/bin:%s", home, DEFAULT_PATH));
	json_object_set_new(env, "PIP_BREAK_SYSTEM_PACKAGES", json_string("1"));
	json_object_set_new(env, "npm_config_prefix", json_sprintf("%s/.local", home));
}

/* Puts a list of places before, or behind, what a variable has. */
static void join(json_t *env, const char *name, const char *places, bool is_before)
{
	const char *value = json_string_value(json_object_get(env, name));
	json_t *joined = !value || !*value ? json_string(places)
			 : is_before	   ? json_sprintf("%s:%s", places, value)
					   : json_sprintf("%s:%s", value, places);

	if (joined)
		json_object_set_new(env, name, joined);
}

static void set_if_absent(json_t *env, const char *name, json_t *value)
{
	if (json_object_get(env, name))
		json_decref(value);
	else
		json_object_set_new(env, name, value);
}

/*
 * The same in an image, for a user who is not its root: what the image says goes before. (As root packages go where
 * the image's own are, and there its PATH leads.)
 */
static void add_packages_of_user(json_t *env)
{
	const char *home = json_string_value(json_object_get(env, "HOME"));
	auto_free char *prefix = mem_printf("%s/.local", home),
		       *programs = mem_printf("%s/bin", prefix);

	join(env, "PATH", programs, false);
	set_if_absent(env, "PIP_BREAK_SYSTEM_PACKAGES", json_string("1"));
	if (!json_object_get(env, "NPM_CONFIG_PREFIX"))
		set_if_absent(env, "npm_config_prefix", json_string(prefix));
}

/* Where packages are that the sandbox has beside its template (core/dependency/dependencies.h). */
static void add_dependencies(json_t *env, const struct sandbox_record *record)
{
	if (!json_object_get(record->dependencies, "layer"))
		return;
	join(env, "PATH", DEPENDENCY_PYTHON "/bin:" DEPENDENCY_NODE "/node_modules/.bin", true);
	join(env, "PYTHONPATH", DEPENDENCY_PYTHON, false);
	join(env, "NODE_PATH", DEPENDENCY_NODE "/node_modules", false);
}

bool environment_is_foreign(const struct sandbox_record *record)
{
	return json_object_size(record->image) > 0;
}

/* Who the image's user is, as sandbox_prepare.h has found out. */
uint32_t environment_uid(const struct sandbox_record *record)
{
	const char *user = json_string_value(json_object_get(record->image, "user"));
	const json_t *uid = json_object_get(record->image, "uid");

	if (uid)
		return (uint32_t)json_integer_value(uid);
	/* Of those that were made before names were looked up: a number, else root. */
	return user ? (uint32_t)strtoul(user, NULL, 10) % (ENVIRONMENT_UID_MAX + 1)
		    : ENVIRONMENT_UID;
}

uint32_t environment_gid(const struct sandbox_record *record, uint32_t uid)
{
	const json_t *gid = json_object_get(record->image, "gid");

	return gid && uid == environment_uid(record) ? (uint32_t)json_integer_value(gid) : uid;
}

struct process_groups environment_groups(const struct sandbox_record *record, uint32_t uid)
{
	const json_t *list = json_object_get(record->image, "groups"), *one;
	struct process_groups groups = {.count = 0};
	size_t i;

	if (uid != environment_uid(record))
		return groups;
	json_array_foreach((json_t *)list, i, one)
	{
		if (groups.count < AGENT_GROUPS_MAX)
			groups.list[groups.count++] = (uint32_t)json_integer_value(one);
	}
	return groups;
}

const char *environment_cwd(const struct sandbox_record *record)
{
	const char *workdir = json_string_value(json_object_get(record->image, "workdir"));

	return workdir && workdir[0] == '/' && workdir[1] ? workdir : ENVIRONMENT_CWD;
}

/* Who the user is whom the image names, of which its /etc/passwd tells the home. */
static void describe_user(const struct sandbox_record *record, uint32_t uid, json_t *env)
{
	const char *user = uid == 0 ? "root" : uid == ENVIRONMENT_UID ? "sandbox" : "nobody";
	const char *home = uid == 0 ? "/root" : uid == ENVIRONMENT_UID ? "/home/sandbox" : "/tmp";
	const char *named = json_string_value(json_object_get(record->image, "user"));
	const char *its_home = json_string_value(json_object_get(record->image, "home"));
	json_t *name = NULL;

	if (its_home && its_home[0] && uid == environment_uid(record))
		home = its_home;
	if (named && uid != 0 && uid == environment_uid(record) &&
		(named[0] < '0' || named[0] > '9'))
		name = json_stringn(named, strcspn(named, ":"));
	if (!name)
		name = json_string(user);
	json_object_set_new(env, "HOME", json_string(home));
	json_object_set(env, "USER", name);
	json_object_set_new(env, "LOGNAME", name);
	if (environment_is_foreign(record))
		json_object_set_new(env, "PATH", json_string(SYSTEM_PATH));
	else
		add_packages(env, home);
}

char **environment_make(struct sandbox *sandbox, const json_t *own, uint32_t uid, bool is_pty)
{
	json_t *env = json_pack("{s:s, s:s}", "SHELL", "/bin/bash", "LANG", "C.UTF-8");
	struct sandbox_record record;
	char **entries;
	const char *name;
	json_t *value, *more;
	size_t i = 0;

	sandbox_read(sandbox, &record);
	describe_user(&record, uid, env);
	if (is_pty)
		json_object_set_new(env, "TERM", json_string(DEFAULT_TERM));
	add_proxy(env, record.network);
	json_object_update(env, json_object_get(record.image, "env"));
	more = project_defaults_env(sandbox->engine->config.projects, &record);
	json_object_update(env, more);
	json_decref(more);
	json_object_update(env, record.env);
	if (environment_is_foreign(&record) && uid != 0)
		add_packages_of_user(env);
	add_dependencies(env, &record);
	sandbox_record_fini(&record);
	if (own)
		json_object_update(env, (json_t *)own);
	entries = mem_new((json_object_size(env) + 1) * sizeof(char *));
	json_object_foreach(env, name, value) entries[i++] =
		mem_printf("%s=%s", name, json_string_value(value));
	json_decref(env);
	return entries;
}

void environment_free(char **entries)
{
	for (char **entry = entries; entry && *entry; entry++)
		free(*entry);
	free(entries);
}
