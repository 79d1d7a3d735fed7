/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dependency/dependency_layer.h"

#include "base/log.h"
#include "core/dependency/dependency_files.h"
#include "core/engine/sandbox_state.h"
#include "core/template/build/build_sandbox.h"
#include "core/template/build/mirror_rules.h"
#include "core/template/build/template_build.h"
#include "core/template/image/layer_capture.h"
#include "core/template/templates.h"
#include "model/sandbox/network_default.h"
#include "model/template/dependency_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Changes with how packages are installed, so that layers of before are not taken. */
#define CACHE_EPOCH   "dependencies 1"
#define LIST_MAX      (16u << 20) /* bytes of what pip and npm say that they installed */
#define INSTALLED_MAX 1000	  /* of those the record keeps so many */
#define NAME_MAX_LEN  214
#define VERSION_MAX   64
#define PYTHON_LIST   "/tmp/sandlot-python.json"
#define NODE_LIST     DEPENDENCY_NODE "/node_modules/.package-lock.json"
#define REQUIREMENTS  "/tmp/sandlot-requirements.txt"

const char *dependency_layer_name(const struct build_cache_entry *layer)
{
	return layer->diff_id + strlen("sha256:");
}

/* --- names --- */

static void add_text(struct digest_stream *hash, const char *text)
{
	/* With its NUL: two texts are never taken for one. */
	digest_stream_add(hash, text ? text : "", strlen(text ? text : "") + 1);
}

static void read_key(struct digest_stream *hash, char ret_key[DEPENDENCY_KEY_LEN + 1])
{
	struct digest digest;

	digest_stream_read(hash, &digest);
	memcpy(ret_key, digest_hex(&digest), DEPENDENCY_KEY_LEN + 1);
}

/* A new release of one of these programs makes other files of a package, or files for another interpreter. */
static void add_host(struct digest_stream *hash)
{
	static const char *const programs[] = {
		"/usr/bin/python3", "/usr/bin/node", "/usr/bin/npm", "/etc/os-release"};

	for (size_t i = 0; i < array_len(programs); i++) {
		struct stat st = {0};
		char text[64] = "";

		if (stat(programs[i], &st) == 0)
			snprintf(text, sizeof(text), "%lld %lld.%ld", (long long)st.st_size,
				(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		add_text(hash, text);
	}
}

void dependency_layer_base(
	const struct sandbox_record *sandbox, char ret_base[DEPENDENCY_KEY_LEN + 1])
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	const char *stack = json_string_value(json_object_get(sandbox->image, "stack"));

	if (stack)
		add_text(hash, stack);
	else
		add_host(hash);
	read_key(hash, ret_base);
}

/* Variables of the sandbox that tell pip and npm where packages are and whom to trust; no others are their affair. */
static json_t *pick_settings(const struct sandbox_record *sandbox)
{
	static const char *const names[] = {"PIP_", "NPM_CONFIG_", "NODE_EXTRA_CA_CERTS",
		"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"};
	json_t *settings = json_object(), *value;
	const char *name;

	json_object_foreach(sandbox->env, name, value)
	{
		for (size_t i = 0; i < array_len(names); i++) {
			if (strncasecmp(name, names[i], strlen(names[i])) == 0)
				json_object_set_new(settings, name, json_deep_copy(value));
		}
	}
	return settings;
}

void dependency_layer_key(const struct engine *engine, const struct sandbox_record *sandbox,
	const json_t *set, char ret_key[DEPENDENCY_KEY_LEN + 1])
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	json_auto_t *settings = pick_settings(sandbox);
	auto_free char *packages = json_dumps(set, JSON_SORT_KEYS | JSON_COMPACT);
	auto_free char *variables = json_dumps(settings, JSON_SORT_KEYS | JSON_COMPACT);
	const struct templates *templates = engine->config.templates;
	char base[DEPENDENCY_KEY_LEN + 1];

	dependency_layer_base(sandbox, base);
	add_text(hash, CACHE_EPOCH);
	add_text(hash, base);
	add_text(hash, packages);
	add_text(hash, variables);
	add_text(hash, templates_mirror(templates, "pip"));
	add_text(hash, templates_mirror(templates, "npm"));
	read_key(hash, ret_key);
}

int dependency_layer_find(struct engine *engine, const struct sandbox_record *sandbox,
	const json_t *set, struct build_cache_entry *ret_layer, struct err *err)
{
	char key[DEPENDENCY_KEY_LEN + 1];

	dependency_layer_key(engine, sandbox, set, key);
	return store_build_cache_get(engine_store(engine), &sandbox->owner, key, ret_layer, err);
}

void dependency_layer_forget(
	struct engine *engine, const struct sandbox_record *sandbox, const json_t *set)
{
	char key[DEPENDENCY_KEY_LEN + 1];
	struct err ignored;

	dependency_layer_key(engine, sandbox, set, key);
	(void)!store_build_cache_delete(engine_store(engine), &sandbox->owner, key, &ignored);
}

/* --- installing --- */

struct work {
	struct engine *engine;
	struct job *job;
	const struct owner *owner;
	const json_t *set;
	json_t *settings; /* variables of pip and npm */
	struct build_sandbox box;
	json_t *installed;
};

/* pip takes packages without TLS only from a host that it is told to trust: the operator's own mirror is. */
static void trust_mirror(json_t *env, const char *mirror)
{
	static const char plain[] = "http://";

	if (strncmp(mirror, plain, strlen(plain)) == 0)
		json_object_set_new(env, "PIP_TRUSTED_HOST",
			json_sprintf("%.*s", (int)strcspn(mirror + strlen(plain), "/"),
				mirror + strlen(plain)));
}

/* Whether the sandbox has a variable of its own; npm takes them in any case. */
static bool has_setting(const json_t *settings, const char *variable)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)settings, name, value)
	{
		if (strcasecmp(name, variable) == 0)
			return true;
	}
	return false;
}

/* Runs a program as root, whose first arguments are fixed; `more` may be NULL. */
static int run(struct work *work, const char *const *program, const json_t *more,
	const char *mirror_variable, const char *mirror, struct err *err)
{
	json_auto_t *argv = json_array();
	json_auto_t *env = json_pack("{s:s, s:s, s:s, s:s}", "PIP_BREAK_SYSTEM_PACKAGES", "1",
		"PIP_ROOT_USER_ACTION", "ignore", "PIP_DISABLE_PIP_VERSION_CHECK", "1",
		"npm_config_cache", "/tmp/npm");

	for (size_t i = 0; program[i]; i++)
		json_array_append_new(argv, json_string(program[i]));
	json_array_extend(argv, (json_t *)more);
	if (mirror && !has_setting(work->settings, mirror_variable)) {
		json_object_set_new(env, mirror_variable, json_string(mirror));
		trust_mirror(env, mirror);
	}
	json_object_update(env, work->settings);
	return build_sandbox_run(&work->box,
		&(struct build_command){.argv = argv, .env = env, .user = "", .workdir = "/"}, err);
}

/* Whether the set has a file. */
static bool has_file(const struct work *work, enum dependency_file file)
{
	return json_object_get(work->set, dependency_file_names[file]);
}

/* Puts a file of the set into the builder, where alone it is read. */
static int put_file(struct work *work, enum dependency_file file, const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t len;
	int r = dependency_files_load(work->engine, work->owner, work->set, file, &text, &len, err);

	return r < 0 ? r : build_sandbox_write(&work->box, path, 0644, text, len, err);
}

/* A JSON document that a program of the builder wrote: of the builder's own making, so anything may be in it. */
static json_t *load_document(struct work *work, const char *path)
{
	auto_free char *text = NULL;
	struct err ignored;

	if (build_sandbox_load(&work->box, path, LIST_MAX, &text, &ignored) < 0)
		return NULL;
	return json_loads(text, 0, NULL);
}

static void note_package(json_t *packages, const char *name, const json_t *version)
{
	if (name && strlen(name) <= NAME_MAX_LEN && json_is_string(version) &&
		json_string_length(version) <= VERSION_MAX &&
		json_object_size(packages) < INSTALLED_MAX)
		json_object_set_new(packages, name, json_string(json_string_value(version)));
}

/* [{"name": "requests", "version": "2.31.0"}, ...], as pip lists them. */
static void note_python(struct work *work)
{
	json_auto_t *list = load_document(work, PYTHON_LIST);
	json_t *packages = json_object(), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		note_package(packages, json_string_value(json_object_get(one, "name")),
			json_object_get(one, "version"));
	}
	json_object_set_new(work->installed, "python", packages);
}

static void tell_python(struct job *job, size_t count, bool has_list)
{
	auto_free char *packages =
		count > 0 ? mem_printf("%zu package%s", count, count == 1 ? "" : "s")
			  : mem_strdup("");

	job_progress(job, 0, 0, "pip installs %s%s%s", has_list ? "requirements.txt" : "",
		has_list && count > 0 ? " and " : "", packages);
}

static int install_python(struct work *work, struct err *err)
{
	static const char *const install[] = {"python3", "-m", "pip", "install", "--no-cache-dir",
		"--no-input", "--target", DEPENDENCY_PYTHON, "--", NULL};
	static const char *const install_file[] = {"python3", "-m", "pip", "install",
		"--no-cache-dir", "--no-input", "--target", DEPENDENCY_PYTHON, "-r", REQUIREMENTS,
		"--", NULL};
	static const char *const list[] = {"/bin/sh", "-c",
		"python3 -m pip list --path " DEPENDENCY_PYTHON " --format json > " PYTHON_LIST,
		NULL};
	const json_t *packages = json_object_get(work->set, "python");
	const char *mirror = templates_mirror(work->engine->config.templates, "pip");
	bool has_list = has_file(work, DEPENDENCY_REQUIREMENTS);
	int r = 0;

	if (json_array_size(packages) == 0 && !has_list)
		return 0;
	tell_python(work->job, json_array_size(packages), has_list);
	if (has_list)
		r = put_file(work, DEPENDENCY_REQUIREMENTS, REQUIREMENTS, err);
	/* At once, so that pip finds versions that fit all. */
	if (r == 0)
		r = run(work, has_list ? install_file : install, packages, "PIP_INDEX_URL", mirror,
			err);
	if (r == 0)
		r = run(work, list, NULL, NULL, NULL, err);
	if (r < 0) {
		err_prefix(err, "pip");
		return r;
	}
	note_python(work);
	return 0;
}

/* {"packages": {"node_modules/left-pad": {"version": "1.3.0"}, ...}}; those inside of others are their own affair. */
static void note_node(struct work *work)
{
	static const char place[] = "node_modules/";
	json_auto_t *lock = load_document(work, NODE_LIST);
	json_t *packages = json_object(), *one;
	const char *path;

	json_object_foreach(json_object_get(lock, "packages"), path, one)
	{
		if (strncmp(path, place, strlen(place)) == 0 &&
			!strstr(path + strlen(place), "node_modules/"))
			note_package(
				packages, path + strlen(place), json_object_get(one, "version"));
	}
	json_object_set_new(work->installed, "node", packages);
}

/* Just what a lock file says. */
static int install_locked(struct work *work, const char *mirror, struct err *err)
{
	/* Scripts of the packages run, those of the project do not: its other files are not here. */
	static const char *const drop_scripts[] = {
		"npm", "pkg", "delete", "scripts", "--prefix", DEPENDENCY_NODE, NULL};
	static const char *const install[] = {"npm", "ci", "--prefix", DEPENDENCY_NODE,
		"--no-audit", "--no-fund", "--no-update-notifier", NULL};
	int r = put_file(work, DEPENDENCY_PACKAGE_JSON, DEPENDENCY_NODE "/package.json", err);

	if (r == 0)
		r = put_file(
			work, DEPENDENCY_PACKAGE_LOCK, DEPENDENCY_NODE "/package-lock.json", err);
	if (r == 0)
		r = run(work, drop_scripts, NULL, NULL, NULL, err);
	return r < 0 ? r : run(work, install, NULL, "NPM_CONFIG_REGISTRY", mirror, err);
}

static int install_node(struct work *work, struct err *err)
{
	static const char *const install[] = {"npm", "install", "--prefix", DEPENDENCY_NODE,
		"--no-audit", "--no-fund", "--no-update-notifier", "--", NULL};
	const json_t *packages = json_object_get(work->set, "node");
	const char *mirror = templates_mirror(work->engine->config.templates, "npm");
	bool is_locked = has_file(work, DEPENDENCY_PACKAGE_LOCK);
	int r;

	if (json_array_size(packages) == 0 && !is_locked)
		return 0;
	job_progress(work->job, 0, 0, "npm installs %s%zu package%s",
		is_locked ? "a lock file and " : "", json_array_size(packages),
		json_array_size(packages) == 1 ? "" : "s");
	r = build_sandbox_mkdir(&work->box, DEPENDENCY_NODE, err);
	if (r == 0 && is_locked)
		r = install_locked(work, mirror, err);
	if (r == 0 && json_array_size(packages) > 0)
		r = run(work, install, packages, "NPM_CONFIG_REGISTRY", mirror, err);
	if (r < 0) {
		err_prefix(err, "npm");
		return r;
	}
	note_node(work);
	return 0;
}

/* --- layers --- */

/*
 * What the builder may reach: what the sandbox may, but for secrets, which are not for install scripts; or what the
 * operator has set for the template, if the sandbox reaches nothing. NULL is that.
 */
static json_t *make_network(const struct sandbox_record *sandbox)
{
	json_t *network = json_deep_copy(sandbox->network);

	json_object_del(network, "secrets");
	if (network_leads_out(network))
		return network;
	json_decref(network);
	return NULL;
}

/* Where the operator's mirrors are now. */
static json_t *make_rules(const struct engine *engine)
{
	static const char *const kinds[] = {"pip", "npm"};
	json_t *rules = json_array();

	for (size_t i = 0; i < array_len(kinds); i++) {
		json_auto_t *some =
			mirror_rules_of(templates_mirror(engine->config.templates, kinds[i]));

		json_array_extend(rules, some);
	}
	return rules;
}

static int open_builder(struct work *work, const struct sandbox_record *sandbox, struct err *err)
{
	json_auto_t *network = make_network(sandbox), *rules = make_rules(work->engine);
	const struct build_sandbox_spec spec = {.template_name = sandbox->template_name,
		.image = json_object_size(sandbox->image) > 0 ? sandbox->image : NULL,
		.network = network,
		.allow = rules};

	return build_sandbox_open(work->engine, &sandbox->owner, work->job, &spec, &work->box, err);
}

/* What was installed becomes a layer. */
static int capture(struct work *work, struct template_build *build,
	struct build_cache_entry *ret_layer, struct err *err)
{
	struct image_pull pull = template_build_pull(build);
	struct digest diff_id = {0};
	int r = build_sandbox_stop(&work->box, err);

	if (r == 0)
		r = layer_capture_place(&pull, work->box.id, &DRIVER_LAYER_PLACE[1], &diff_id,
			&ret_layer->bytes, err);
	if (r == 0 && !diff_id.text[0])
		r = err_explain(err, ERR_UNPROCESSABLE, "nothing_installed", NULL,
			"pip and npm have installed nothing");
	if (r == 0)
		memcpy(ret_layer->diff_id, diff_id.text, sizeof(ret_layer->diff_id));
	return r;
}

static int build(struct work *work, const struct sandbox_record *sandbox,
	struct build_cache_entry *ret_layer, struct err *err)
{
	struct template_build build = {.engine = work->engine,
		.owner = &sandbox->owner,
		.name = sandbox->template_name,
		.job = work->job};
	int r = open_builder(work, sandbox, err);

	if (r < 0)
		return r;
	pthread_mutex_init(&build.lock, NULL);
	r = install_python(work, err);
	if (r == 0)
		r = install_node(work, err);
	if (r == 0) {
		job_progress(work->job, 0, 0, "making a layer of them");
		r = capture(work, &build, ret_layer, err);
	}
	build_sandbox_close(&work->box);
	pthread_mutex_destroy(&build.lock);
	return r;
}

int dependency_layer_make(struct engine *engine, struct job *job,
	const struct sandbox_record *sandbox, const json_t *set,
	struct build_cache_entry *ret_layer, struct err *err)
{
	struct work work = {.engine = engine, .job = job, .owner = &sandbox->owner, .set = set};
	struct build_cache_entry layer = {0};
	char key[DEPENDENCY_KEY_LEN + 1];
	struct err ignored;
	int r;

	dependency_layer_key(engine, sandbox, set, key);
	r = templates_begin(engine, err);
	if (r < 0)
		return r;
	work.installed = json_pack("{s:{}, s:{}}", "python", "node");
	work.settings = pick_settings(sandbox);
	r = build(&work, sandbox, &layer, err);
	json_decref(work.settings);
	templates_end(engine);
	if (r < 0) {
		json_decref(work.installed);
		return r;
	}
	layer.note = work.installed;
	/* Without the note they are only installed again. */
	if (store_build_cache_put(engine_store(engine), &sandbox->owner, key, &layer, &ignored) < 0)
		log_warning("%s", ignored.message);
	*ret_layer = layer;
	return 0;
}
