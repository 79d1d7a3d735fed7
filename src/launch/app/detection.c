/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/detection.h"

#include "base/format.h"
#include "launch/app/app_service.h"
#include "launch/app/code_port.h"
#include "launch/app/override_list.h"
#include "launch/app/part_command.h"
#include "launch/app/requirements.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const directories[] = {"", "frontend_code", "backend_code", "frontend",
	"backend", "client", "server", "web", "app", "ui", "api"};
static const char *const frontend_directories[] = {
	"frontend_code", "frontend", "client", "web", "ui"};

/* A file that shows which program installs packages. */
static const struct {
	const char *file;
	enum app_runtime runtime;
	const char *manager;
	bool is_lock;
} manifests[] = {
	{"package-lock.json", RUNTIME_NODE, "npm", true},
	{"npm-shrinkwrap.json", RUNTIME_NODE, "npm", true},
	{"pnpm-lock.yaml", RUNTIME_NODE, "pnpm", true},
	{"yarn.lock", RUNTIME_NODE, "yarn", true},
	{"bun.lock", RUNTIME_NODE, "bun", true},
	{"bun.lockb", RUNTIME_NODE, "bun", true},
	{"package.json", RUNTIME_NODE, "npm", false},
	{"uv.lock", RUNTIME_PYTHON, "uv", true},
	{"poetry.lock", RUNTIME_PYTHON, "poetry", true},
	{"Pipfile.lock", RUNTIME_PYTHON, "pipenv", true},
	{"requirements.txt", RUNTIME_PYTHON, "pip", false},
	{"pyproject.toml", RUNTIME_PYTHON, "pip", false},
	{"Pipfile", RUNTIME_PYTHON, "pipenv", false},
};

/* Libraries that pages are written with. */
static const struct {
	const char *name, *package;
} libraries[] = {{"react", "react"}, {"vue", "vue"}, {"svelte", "svelte"}, {"preact", "preact"},
	{"solid", "solid-js"}};

static const char *const node_entries[] = {"server.js", "index.js", "app.js", "main.js",
	"server.mjs", "index.mjs", "src/index.js", "src/server.js", "server.ts", "index.ts",
	"src/index.ts", "src/main.ts"};
static const char *const python_entries[] = {"manage.py", "main.py", "app.py", "server.py",
	"run.py", "wsgi.py", "asgi.py", "app/main.py", "src/main.py", "src/app.py"};

/* What was found in one directory for one runtime. */
struct candidate {
	struct app_part part;
	json_t *package;  /* package.json; owned */
	char *python;	  /* what it requires, as texts behind each other; owned */
	json_t *evidence; /* of the framework; owned */
	double confidence;
};

static void candidate_fini(struct candidate *candidate)
{
	json_decref(candidate->package);
	json_decref(candidate->evidence);
	free(candidate->python);
}

static void add_evidence(json_t *list, const char *dir, const char *name, const char *why)
{
	auto_free char *path = file_set_join(dir, name);

	json_array_append_new(list, json_pack("{s:s, s:s}", "file", path, "why", why));
}

/* --- packages --- */

static const char *node_version(const json_t *package, const char *name)
{
	static const char *const groups[] = {"dependencies", "devDependencies"};

	for (size_t i = 0; package && i < array_len(groups); i++) {
		const json_t *version = json_object_get(json_object_get(package, groups[i]), name);

		if (json_is_string(version))
			return json_string_value(version);
	}
	return NULL;
}

static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

bool detection_names_package(const char *text, const char *package)
{
	size_t len = strlen(package);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t end = strcspn(line, "\n#");

		for (size_t i = 0; i + len <= end; i++) {
			if ((i == 0 || !is_name_character(line[i - 1])) &&
				strncasecmp(line + i, package, len) == 0 &&
				!is_name_character(line[i + len]))
				return true;
		}
	}
	return false;
}

static bool needs_package(const struct candidate *candidate, const char *name)
{
	return candidate->package
		       ? node_version(candidate->package, name) != NULL
		       : candidate->python && detection_names_package(candidate->python, name);
}

/* --- one directory --- */

static void find_manifests(const struct file_set *set, struct app_part *part)
{
	for (size_t i = 0; i < array_len(manifests); i++) {
		if (manifests[i].runtime != part->framework->runtime ||
			!file_set_has(set, part->dir, manifests[i].file))
			continue;
		if (!part->package_manager)
			part->package_manager = manifests[i].manager;
		if (manifests[i].is_lock && !part->lock)
			part->lock = manifests[i].file;
		if (!manifests[i].is_lock && !part->manifest)
			part->manifest = manifests[i].file;
	}
}

static void find_node_entry(const struct file_set *set, struct candidate *candidate)
{
	struct app_part *part = &candidate->part;
	const char *start = part_command_script(candidate->package, "start");
	const char *given = json_string_value(json_object_get(candidate->package, "main"));

	if (start && strncmp(start, "node ", 5) == 0 && start[5] != '-' && !strchr(start + 5, ' '))
		given = start + 5;
	if (given && strncmp(given, "./", 2) == 0)
		given += 2;
	if (given && strlen(given) < sizeof(part->entry) && file_set_has(set, part->dir, given)) {
		snprintf(part->entry, sizeof(part->entry), "%s", given);
		return;
	}
	for (size_t i = 0; i < array_len(node_entries) && !part->entry[0]; i++) {
		if (file_set_has(set, part->dir, node_entries[i]))
			snprintf(part->entry, sizeof(part->entry), "%s", node_entries[i]);
	}
}

/*
 * Scripts alone may be those of a page, or of an app of Python. Without a package.json only names that servers have count,
 * and that which both have only where it does not look like one for a browser.
 */
static bool is_server_alone(const struct file_set *set, const struct app_part *part)
{
	auto_free char *text = NULL;

	if (file_set_has(set, part->dir, "index.html"))
		return false;
	if (strncmp(part->entry, "server.", 7) == 0)
		return true;
	if (strncmp(part->entry, "index.", 6) != 0)
		return false;
	for (size_t i = 0; i < array_len(python_entries); i++) {
		if (file_set_has(set, part->dir, python_entries[i]))
			return false;
	}
	text = file_set_read(set, part->dir, part->entry);
	return text && !strstr(text, "document.") && !strstr(text, "window.");
}

static bool look_for_node(
	const struct file_set *set, const char *dir, struct candidate *ret_candidate)
{
	struct candidate candidate = {.package = file_set_read_json(set, dir, "package.json"),
		.evidence = json_array(),
		.confidence = 0.6};
	bool has_package = candidate.package != NULL;

	snprintf(candidate.part.dir, sizeof(candidate.part.dir), "%s", dir);
	candidate.part.framework = framework_find("node");
	for (size_t i = 0; has_package && i < framework_count; i++) {
		if (frameworks[i].runtime != RUNTIME_NODE || !frameworks[i].package ||
			!needs_package(&candidate, frameworks[i].package))
			continue;
		candidate.part.framework = &frameworks[i];
		candidate.confidence = 0.95;
		add_evidence(candidate.evidence, dir, "package.json", "names it as a dependency");
		break;
	}
	find_node_entry(set, &candidate);
	if (!has_package && !is_server_alone(set, &candidate.part)) {
		candidate_fini(&candidate);
		return false;
	}
	if (json_array_size(candidate.evidence) == 0)
		add_evidence(candidate.evidence, dir,
			has_package ? "package.json" : candidate.part.entry, "is there");
	find_manifests(set, &candidate.part);
	part_command_choose_node(&candidate.part, set, candidate.package, false);
	*ret_candidate = candidate;
	return true;
}

static void read_requirements(const struct file_set *set, struct candidate *candidate)
{
	static const char *const files[] = {
		"requirements.txt", "requirements/base.txt", "pyproject.toml", "Pipfile"};
	char *all = mem_strdup("");

	for (size_t i = 0; i < array_len(files); i++) {
		auto_free char *text = requirements_read(set, candidate->part.dir, files[i]);
		char *joined;

		if (!text)
			continue;
		joined = mem_printf("%s%s\n", all, text);
		free(all);
		all = joined;
	}
	candidate->python = all;
}

/* The first entry file that there is; one that makes the framework's app goes before. */
static void find_python_entry(
	const struct file_set *set, struct candidate *candidate, const char *call)
{
	struct app_part *part = &candidate->part;

	for (size_t i = 0; i < array_len(python_entries); i++) {
		auto_free char *text = NULL;

		if (!file_set_has(set, part->dir, python_entries[i]))
			continue;
		if (!part->entry[0])
			snprintf(part->entry, sizeof(part->entry), "%s", python_entries[i]);
		text = call ? file_set_read(set, part->dir, python_entries[i]) : NULL;
		if (text && strstr(text, call)) {
			snprintf(part->entry, sizeof(part->entry), "%s", python_entries[i]);
			return;
		}
	}
}

/* By what its entry file imports, if nothing is said of requirements. */
static const struct framework *imported(const char *text)
{
	for (size_t i = 0; i < framework_count; i++) {
		char import[64], from[64];

		if (frameworks[i].runtime != RUNTIME_PYTHON || !frameworks[i].package)
			continue;
		snprintf(import, sizeof(import), "import %s", frameworks[i].package);
		snprintf(from, sizeof(from), "from %s ", frameworks[i].package);
		if (strstr(text, import) || strstr(text, from))
			return &frameworks[i];
	}
	return NULL;
}

static bool look_for_python(
	const struct file_set *set, const char *dir, struct candidate *ret_candidate)
{
	struct candidate candidate = {.evidence = json_array(), .confidence = 0.6};
	struct app_part *part = &candidate.part;

	snprintf(part->dir, sizeof(part->dir), "%s", dir);
	part->framework = framework_find("python");
	find_manifests(set, part);
	read_requirements(set, &candidate);
	for (size_t i = 0; i < framework_count && candidate.confidence < 0.9; i++) {
		if (frameworks[i].runtime != RUNTIME_PYTHON || !frameworks[i].package ||
			!needs_package(&candidate, frameworks[i].package))
			continue;
		part->framework = &frameworks[i];
		candidate.confidence = 0.95;
		add_evidence(candidate.evidence, dir,
			part->manifest ? part->manifest : "requirements", "requires it");
	}
	find_python_entry(set, &candidate, part_command_call(part->framework));
	if (candidate.confidence < 0.9 && part->entry[0]) {
		auto_free char *text = file_set_read(set, dir, part->entry);
		const struct framework *found = text ? imported(text) : NULL;

		if (found) {
			part->framework = found;
			candidate.confidence = 0.8;
			add_evidence(candidate.evidence, dir, part->entry, "imports it");
		}
	}
	if (!part->entry[0] && json_array_size(candidate.evidence) == 0) {
		candidate_fini(&candidate);
		return false;
	}
	if (json_array_size(candidate.evidence) == 0)
		add_evidence(candidate.evidence, dir, part->entry, "is there");
	part_command_choose_python(part, set);
	*ret_candidate = candidate;
	return true;
}

static bool look_for_static(
	const struct file_set *set, const char *dir, struct candidate *ret_candidate)
{
	struct candidate candidate = {.evidence = json_array(), .confidence = 0.7};

	if (!file_set_has(set, dir, "index.html") || file_set_has(set, dir, "package.json")) {
		candidate_fini(&candidate);
		return false;
	}
	snprintf(candidate.part.dir, sizeof(candidate.part.dir), "%s", dir);
	snprintf(candidate.part.entry, sizeof(candidate.part.entry), "index.html");
	candidate.part.framework = framework_find("static");
	snprintf(candidate.part.command, sizeof(candidate.part.command), "%s",
		candidate.part.framework->command);
	add_evidence(candidate.evidence, dir, "index.html", "is there");
	*ret_candidate = candidate;
	return true;
}

static bool (*const lookers[])(const struct file_set *set, const char *dir,
	struct candidate *ret_candidate) = {look_for_node, look_for_python, look_for_static};

/* --- the whole --- */

static enum app_role role_of(const struct app_part *part)
{
	for (size_t i = 0; i < array_len(frontend_directories); i++) {
		if (strcmp(part->dir, frontend_directories[i]) == 0)
			return ROLE_FRONTEND;
	}
	return part->framework->role;
}

static const char *library_of(const struct candidate *candidate)
{
	for (size_t i = 0; i < array_len(libraries); i++) {
		if (candidate->package && needs_package(candidate, libraries[i].package))
			return libraries[i].name;
	}
	return NULL;
}

static void describe(struct detection *detection, const struct candidate *candidate,
	const struct file_set *set, enum app_role role)
{
	const struct app_part *part = &candidate->part;
	const char *engine = json_string_value(
		json_object_get(json_object_get(candidate->package, "engines"), "node"));
	json_t *why = json_array();

	json_array_append_new(json_object_get(detection->document, "frameworks"),
		json_pack("{s:s, s:s?, s:s, s:s, s:f, s:O}", "name", part->framework->name, "with",
			library_of(candidate), "role", framework_role_name(role), "directory",
			part->dir, "confidence", candidate->confidence, "evidence",
			candidate->evidence));
	for (size_t i = 0; i < array_len(manifests); i++) {
		if (manifests[i].runtime == part->framework->runtime &&
			file_set_has(set, part->dir, manifests[i].file))
			add_evidence(why, part->dir, manifests[i].file, "is there");
	}
	if (json_array_size(why) == 0)
		add_evidence(why, part->dir, part->entry, "is there");
	json_array_append_new(json_object_get(detection->document, "runtimes"),
		json_pack("{s:s, s:s, s:s?, s:s?, s:f, s:o}", "name",
			framework_runtime_name(part->framework->runtime), "directory", part->dir,
			"package_manager", part->package_manager, "version", engine, "confidence",
			part->manifest ? 0.95 : 0.7, "evidence", why));
}

static bool needs_for_service(const void *candidate, const char *package)
{
	return needs_package(candidate, package);
}

static void find_services(
	struct detection *detection, const struct candidate *candidate, const struct file_set *set)
{
	const struct app_part *part = &candidate->part;

	app_service_detect(json_object_get(detection->document, "services"), set,
		&(struct app_service_place){.dir = part->dir,
			.manifest = part->manifest,
			.entry = part->entry,
			.needs = needs_for_service,
			.arg = candidate});
}

static void look_in(
	struct detection *detection, const struct file_set *set, const char *dir, bool takes_weak)
{
	for (size_t i = 0; i < array_len(lookers); i++) {
		struct candidate candidate;
		enum app_role role;

		if (!lookers[i](set, dir, &candidate))
			continue;
		role = role_of(&candidate.part);
		if (!detection->has_part[role] && (candidate.part.command[0] || takes_weak)) {
			detection->parts[role] = candidate.part;
			detection->has_part[role] = true;
			describe(detection, &candidate, set, role);
			find_services(detection, &candidate, set);
		}
		candidate_fini(&candidate);
	}
}

/* --- what people say otherwise --- */

static int bad_override(enum app_role role, const char *what, const char *why, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "%s%s %s",
		framework_role_name(role), what, why);
}

#define OUTSIDE "must be a path below the app, without '..', quotes and backslashes"

static int override_texts(
	struct app_part *part, enum app_role role, const json_t *given, struct err *err)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} texts[] = {{"directory", part->dir, sizeof(part->dir)},
		{"command", part->command, sizeof(part->command)},
		{"install", part->install, sizeof(part->install)},
		{"entry", part->entry, sizeof(part->entry)}};

	for (size_t i = 0; i < array_len(texts); i++) {
		const json_t *value = json_object_get(given, texts[i].name);
		const char *text = json_string_value(value);

		if (!value || json_is_null(value))
			continue;
		if (!text || strlen(text) >= texts[i].size)
			return err_explain(err, ERR_INVALID, "invalid_field", NULL,
				"%s.%s must be a text of less than %zu characters",
				framework_role_name(role), texts[i].name, texts[i].size);
		snprintf(texts[i].to, texts[i].size, "%s", text);
	}
	if (part->dir[0] == '/' || strstr(part->dir, "..") || strchr(part->dir, '\''))
		return bad_override(role, ".directory", OUTSIDE, err);
	if (part->entry[0] == '/' || strstr(part->entry, "..") || strpbrk(part->entry, "'\\\n"))
		return bad_override(role, ".entry", OUTSIDE, err);
	return 0;
}

/* Finds the entry file of a framework anew. */
static void find_entry(const struct file_set *set, struct candidate *candidate)
{
	struct app_part *part = &candidate->part;

	part->entry[0] = '\0';
	if (part->framework->runtime == RUNTIME_NODE)
		find_node_entry(set, candidate);
	else if (part->framework->runtime == RUNTIME_PYTHON)
		find_python_entry(set, candidate, part_command_call(part->framework));
	else
		snprintf(part->entry, sizeof(part->entry), "index.html");
}

/* What follows from another framework or entry file: the command, and what installs packages. */
static void choose_command(const struct file_set *set, struct app_part *part, bool is_entry_said)
{
	struct candidate candidate = {
		.part = *part, .package = file_set_read_json(set, part->dir, "package.json")};

	candidate.part.package_manager = candidate.part.manifest = candidate.part.lock = NULL;
	find_manifests(set, &candidate.part);
	if (!is_entry_said)
		find_entry(set, &candidate);
	if (part->framework->runtime == RUNTIME_NODE)
		part_command_choose_node(&candidate.part, set, candidate.package, is_entry_said);
	else if (part->framework->runtime == RUNTIME_PYTHON)
		part_command_choose_python(&candidate.part, set);
	else
		snprintf(candidate.part.command, sizeof(candidate.part.command), "%s",
			part->framework->command);
	*part = candidate.part;
	candidate_fini(&candidate);
}

static int choose_again(struct app_part *part, const struct file_set *set, enum app_role role,
	const json_t *given, struct err *err)
{
	const bool is_entry_said = json_is_string(json_object_get(given, "entry"));
	const bool is_framework_said = json_is_string(json_object_get(given, "framework"));
	char command[APP_COMMAND_MAX];
	int r = override_texts(part, role, given, err);

	if (r < 0)
		return r;
	memcpy(command, part->command, sizeof(command));
	if (is_framework_said || is_entry_said) {
		choose_command(set, part, is_entry_said);
		part->is_command_said = false;
	}
	if (json_is_string(json_object_get(given, "command"))) {
		memcpy(part->command, command, sizeof(command));
		part->is_command_said = true;
		part->script = NULL;
	} else if (is_entry_said && !file_set_has(set, part->dir, part->entry)) {
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"%s.entry: there is no file %s%s%s", framework_role_name(role), part->dir,
			part->dir[0] ? "/" : "", part->entry);
	}
	return 0;
}

static int unknown_framework(enum app_role role, const char *name, struct err *err)
{
	char known[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < framework_count; i++)
		len = format_append(
			known, sizeof(known), len, "%s%s", i > 0 ? ", " : "", frameworks[i].name);
	return err_explain(err, ERR_INVALID, "invalid_field", NULL,
		"%s.framework: %.32s is not known; there are %s", framework_role_name(role), name,
		known);
}

static int apply_override(struct detection *detection, const struct file_set *set,
	enum app_role role, const json_t *given, struct err *err)
{
	struct app_part *part = &detection->parts[role];
	const char *dir = json_string_value(json_object_get(given, "directory"));
	const char *framework = json_string_value(json_object_get(given, "framework"));
	const json_t *port = json_object_get(given, "port");

	if (!given || json_is_null(given))
		return 0;
	if (json_is_false(given)) {
		detection->has_part[role] = false;
		return 0;
	}
	if (!json_is_object(given))
		return bad_override(role, "", "must be an object, or false", err);
	if (dir && (!detection->has_part[role] || strcmp(dir, part->dir) != 0)) {
		detection->has_part[role] = false;
		if (strlen(dir) < APP_DIRECTORY_MAX)
			look_in(detection, set, dir, true);
	}
	if (!detection->has_part[role]) {
		*part = (struct app_part){.framework = framework_find("static")};
		detection->has_part[role] = true;
	}
	if (framework && !framework_find(framework))
		return unknown_framework(role, framework, err);
	if (framework)
		part->framework = framework_find(framework);
	if (json_is_integer(port)) {
		if (json_integer_value(port) < 1 || json_integer_value(port) > 65535)
			return bad_override(role, ".port", "must be from 1 to 65535", err);
		part->port = (uint16_t)json_integer_value(port);
	}
	return choose_again(part, set, role, given, err);
}

static int apply_overrides(struct detection *detection, const struct file_set *set,
	const json_t *overrides, const char *source, struct err *err)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		int r = apply_override(detection, set, role,
			json_object_get(overrides, framework_role_name(role)), err);

		if (r < 0)
			return r;
	}
	return app_service_choose(json_object_get(detection->document, "services"),
		json_object_get(overrides, "services"), source, err);
}

/* One that takes no notice of PORT has its own. */
static void take_own_port(struct app_part *part, const struct file_set *set)
{
	auto_free char *text = part->entry[0] && !strstr(part->command, "{port}")
				       ? file_set_read(set, part->dir, part->entry)
				       : NULL;
	const char *at;

	part->port = text ? code_port_find(text, part->framework->runtime, &at) : 0;
	part->has_own_port = part->port != 0;
}

static void choose_ports(struct detection *detection, const struct file_set *set)
{
	struct app_part *backend = &detection->parts[ROLE_BACKEND];
	struct app_part *frontend = &detection->parts[ROLE_FRONTEND];

	for (int role = 0; role < ROLE_COUNT; role++) {
		struct app_part *part = &detection->parts[role];

		if (!detection->has_part[role] || part->port)
			continue;
		take_own_port(part, set);
		if (!part->has_own_port)
			part->port = part->framework->port;
	}
	if (detection->has_part[ROLE_BACKEND] && detection->has_part[ROLE_FRONTEND] &&
		backend->port == frontend->port)
		(backend->has_own_port ? frontend : backend)->port++;
}

/* What is known of a command once the port is. */
static void complete_commands(struct detection *detection)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		struct app_part *part = &detection->parts[role];
		char port[8];

		if (!detection->has_part[role])
			continue;
		snprintf(port, sizeof(port), "%u", part->port);
		part->is_port_told = strstr(part->command, "{port}") != NULL;
		part->is_base_told = strstr(part->command, "{base}") != NULL;
		part_command_fill(part->command, "{port}", port);
		part_command_fill(part->command, "{entry}", part->entry);
	}
}

static void describe_parts(struct detection *detection)
{
	json_t *parts = json_object_get(detection->document, "parts");

	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = &detection->parts[role];
		char shown[APP_COMMAND_MAX];

		if (!detection->has_part[role])
			continue;
		part_command_line(part, "/", shown);
		json_array_append_new(parts,
			json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:i, s:b}", "role",
				framework_role_name(role), "directory", part->dir, "runtime",
				framework_runtime_name(part->framework->runtime), "framework",
				part->framework->name, "package_manager", part->package_manager,
				"entry", part->entry[0] ? part->entry : NULL, "command",
				shown[0] ? shown : NULL, "port", part->port, "hot",
				part->framework->is_hot));
	}
}

static json_t *service_names(const struct detection *detection)
{
	json_t *names = json_array(), *service;
	size_t i;

	json_array_foreach(json_object_get(detection->document, "services"), i, service)
		json_array_append(names, json_object_get(service, "name"));
	return names;
}

/* Says what was found beside what is said otherwise. */
static void describe_overrides(struct detection *detection, const struct file_set *set,
	const struct detection *before, json_t *services, const json_t *overrides)
{
	auto_free struct detection *found = mem_new(sizeof(*found));
	json_t *list = json_object_get(detection->document, "overrides");

	*found = *before;
	choose_ports(found, set);
	complete_commands(found);

	struct override_found all = {
		.parts = found->parts, .has_part = found->has_part, .services = services};

	override_list_add(list, detection->settings.said, APP_SETTINGS_FILE, &all);
	override_list_add(list, overrides, "request", &all);
}

/* Follows sandlot.json, or nothing of it. */
static void apply_settings(struct detection *detection, const struct file_set *set)
{
	auto_free struct detection *before = mem_new(sizeof(*before));
	json_auto_t *document = json_deep_copy(detection->document);
	struct err err;

	*before = *detection;
	if (apply_overrides(detection, set, detection->settings.said, APP_SETTINGS_FILE, &err) == 0)
		return;
	*detection = *before;
	json_object_update(detection->document, document);
	app_settings_refuse(&detection->settings, err.message);
}

static void find_parts(struct detection *detection, const struct file_set *set)
{
	for (size_t i = 0; i < array_len(directories); i++) {
		if (file_set_has_directory(set, directories[i]))
			look_in(detection, set, directories[i], false);
	}
	for (size_t i = 0; i < array_len(directories) && !detection_primary(detection); i++)
		look_in(detection, set, directories[i], true);
}

int detection_make(const struct file_set *set, const json_t *overrides,
	struct detection *ret_detection, struct err *err)
{
	struct detection detection = {
		.document = json_pack("{s:[], s:[], s:[], s:[], s:[]}", "runtimes", "frameworks",
			"services", "parts", "overrides")};
	auto_free struct detection *before = mem_new(sizeof(*before));
	json_auto_t *services = NULL;
	int r;

	find_parts(&detection, set);
	*before = detection;
	services = service_names(&detection);
	app_settings_read(set, &detection.settings);
	apply_settings(&detection, set);
	r = apply_overrides(&detection, set, overrides, "request", err);
	if (r < 0) {
		detection_fini(&detection);
		return r;
	}
	choose_ports(&detection, set);
	complete_commands(&detection);
	describe_parts(&detection);
	describe_overrides(&detection, set, before, services, overrides);
	*ret_detection = detection;
	return 0;
}

void detection_fini(struct detection *detection)
{
	json_decref(detection->document);
	detection->document = NULL;
	app_settings_fini(&detection->settings);
}

const struct app_part *detection_primary(const struct detection *detection)
{
	for (int role = ROLE_COUNT - 1; role >= 0; role--) {
		if (detection->has_part[role])
			return &detection->parts[role];
	}
	return NULL;
}
