/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/check/validation.h"

#include "base/buf.h"
#include "launch/app/code_port.h"
#include "launch/app/made_files.h"
#include "launch/check/lock_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SCAN_FILES    400 /* sources that are read */
#define FINDINGS_MAX  200
#define PER_RULE_MAX  20
#define DIFF_LINE_MAX 200

enum severity { INFO, WARNING, ERROR };

/* One look: what the rules see, and where they put what they found. */
struct look {
	const struct file_set *set;
	const struct detection *detection;
	struct validation *to;
	const char *rule;
	enum severity severity;
	unsigned found; /* by this rule */
};

struct finding {
	const char *file; /* NULL: the app as a whole */
	unsigned line;	  /* 0: the file as a whole */
	const char *fix, *diff;
};

static void add(struct look *look, const struct finding *finding, const char *message)
{
	static const char *const names[] = {"info", "warning", "error"};

	if (look->found++ >= PER_RULE_MAX || json_array_size(look->to->findings) >= FINDINGS_MAX)
		return;
	json_array_append_new(look->to->findings,
		json_pack("{s:s, s:s, s:s?, s:o, s:s, s:s?, s:s?}", "rule", look->rule, "severity",
			names[look->severity], "file", finding->file, "line",
			finding->line ? json_integer(finding->line) : json_null(), "message",
			message, "fix", finding->fix, "diff", finding->diff));
	if (look->severity == ERROR)
		look->to->has_error = true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static const struct app_part *part_of(const struct look *look, enum app_role role)
{
	return look->detection->has_part[role] ? &look->detection->parts[role] : NULL;
}

/* --- rules --- */

static void check_settings(struct look *look)
{
	json_t *problem;
	size_t i;

	json_array_foreach(look->detection->settings.problems, i, problem)
	{
		bool is_error = json_is_true(json_object_get(problem, "is_error"));

		look->severity = is_error ? ERROR : WARNING;
		add(look,
			&(struct finding){.file = APP_SETTINGS_FILE,
				.line = (unsigned)json_integer_value(
					json_object_get(problem, "line"))},
			json_string_value(json_object_get(problem, "message")));
	}
}

/* Whether somebody has said that a part that was found is not to be started. */
static bool has_dropped_part(const struct look *look)
{
	const json_t *all = json_object_get(look->detection->document, "overrides");
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)all, i, one)
	{
		if (json_is_false(json_object_get(one, "said")))
			return true;
	}
	return false;
}

static void check_start_script(struct look *look)
{
	if (!detection_primary(look->detection)) {
		add(look, &(struct finding){0},
			has_dropped_part(look)
				? "nothing is left to be started: sandlot.json or the request says "
				  "false of each part that was found"
				: "nothing was found that can be started: no package.json, no "
				  "main.py, app.py, manage.py or server.py, no index.html");
		return;
	}
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);
		auto_free char *file = part ? file_set_join(part->dir, "package.json") : NULL;

		if (!part || part->command[0])
			continue;
		if (part->framework->runtime == RUNTIME_NODE)
			add(look, &(struct finding){.file = file},
				"package.json has no script start or dev, and there is no "
				"server.js or "
				"index.js");
		else
			add(look, &(struct finding){0}, "no entry file was found");
	}
}

static void check_requirements(struct look *look)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);
		auto_free char *file = NULL;

		if (!part || part->framework->runtime != RUNTIME_PYTHON || part->manifest)
			continue;
		file = file_set_join(part->dir, "requirements.txt");
		add(look, &(struct finding){.file = file},
			"there is no requirements.txt or pyproject.toml: only what the template "
			"has "
			"can be imported");
	}
}

#define NO_OVERLAY "the config does not say whether errors cover the page (hmr.overlay)"

/* A text as a diff in which all of it is new. */
static char *added_lines(const char *text)
{
	struct buf made = BUF_INIT(FILE_SET_TEXT_MAX);

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		buf_printf(&made, "+%.*s\n", (int)strcspn(line, "\n"), line);
	return buf_take_str(&made);
}

static const char *find_vite_config(const struct look *look, char path[APP_ENTRY_MAX])
{
	/* In the order in which Vite looks for them. */
	static const char *const names[] = {"vite.config.js", "vite.config.mjs", "vite.config.ts",
		"vite.config.cjs", "vite.config.mts", "vite.config.cts"};
	const struct app_part *part = part_of(look, ROLE_FRONTEND);

	if (!part || strcmp(part->framework->name, "vite") != 0)
		return NULL;
	for (size_t i = 0; i < array_len(names); i++) {
		if (!file_set_has(look->set, part->dir, names[i]))
			continue;
		snprintf(path, APP_ENTRY_MAX, "%s%s%s", part->dir, part->dir[0] ? "/" : "",
			names[i]);
		return names[i];
	}
	snprintf(path, APP_ENTRY_MAX, "%s%svite.config.js", part->dir, part->dir[0] ? "/" : "");
	return "";
}

/* Added to the end of a config that is no module; what it exports is known only there. */
static const char overlay_patch[] =
	"\n// Added by the launch to this copy alone: errors do not cover the page.\n"
	"module.exports = ((own) => {\n"
	"  const change = (config) => (config.server?.hmr === false ? config : { ...config,\n"
	"    server: { ...config.server, hmr: { ...Object(config.server?.hmr), overlay: false } } "
	"});\n"
	"  const said = own.default ?? own;\n"
	"  return typeof said === 'function' ? async (env) => change(await said(env)) : "
	"change(said);\n"
	"})(module.exports);\n";

/* Whether the config says something of it, or that there is nothing that could cover the page. */
static bool says_overlay(const char *text)
{
	for (const char *at = text; (at = strstr(at, "hmr")); at += 3) {
		const char *value = at + 3 + strspn(at + 3, " \t\n");

		if (*value == ':' &&
			strncmp(value + 1 + strspn(value + 1, " \t\n"), "false", 5) == 0)
			return true;
	}
	return strstr(text, "overlay") != NULL;
}

/* The config that takes the app's own, which is a module or is not there. */
static void inject_config(struct look *look, const char *name)
{
	auto_free char *path =
		file_set_join(part_of(look, ROLE_FRONTEND)->dir, VALIDATION_VITE_CONFIG);
	auto_free char *made = NULL, *diff = NULL;

	made = name[0] ? mem_printf("import { mergeConfig } from 'vite';\n"
				    "import own from '../%s';\n"
				    "const more = { server: { hmr: { overlay: false } } };\n"
				    "export default async (env) => mergeConfig("
				    "(await (typeof own === 'function' ? own(env) : own)) ?? {}, "
				    "more);\n",
				 name)
		       : mem_strdup("export default { server: { hmr: { overlay: false } } };\n");
	diff = added_lines(made);
	json_object_set_new(look->to->fixes, path, json_string(made));
	add(look,
		&(struct finding){.file = path,
			.fix = "started with a config that takes the app's own and adds this",
			.diff = diff},
		NO_OVERLAY);
}

/*
 * An error that covers the page is for who sits before the editor, not for who looks at a preview. There is no flag for
 * it, so a config is made that takes the app's own and says that. One that is no module cannot be taken so: it is changed
 * in the copy. A command of the app's own is not told of a config.
 */
static void check_overlay(struct look *look, const char *name, const char *path, const char *text)
{
	const struct app_part *part = part_of(look, ROLE_FRONTEND);
	auto_free char *made = NULL, *diff = NULL;

	if (text && says_overlay(text))
		return;
	if (text && !strstr(text, "export ") && strstr(text, "module.exports")) {
		made = mem_printf("%s%s", text, overlay_patch);
		diff = added_lines(overlay_patch);
		if (json_object_set_new(look->to->fixes, path, json_string(made)) == 0)
			add(look,
				&(struct finding){.file = path,
					.line = file_set_line(text, text + strlen(text)),
					.fix = "the copy has this at its end",
					.diff = diff},
				NO_OVERLAY);
	} else if (strstr(part->command, "{config}")) {
		inject_config(look, name);
	} else {
		add(look, &(struct finding){.file = name[0] ? path : NULL}, NO_OVERLAY);
	}
}

/* Command line flags win over what the config says, so nothing of it is rewritten. */
static void check_vite(struct look *look)
{
	static const struct {
		const char *text, *flag, *message, *fix;
	} options[] = {{"host:", "--host", "the config does not say on which address to listen",
			       "started with --host 127.0.0.1"},
		{"port:", "--port", "the config does not say which port",
			"started with --port and --strictPort, so that it does not move to "
			"another"},
		{"base:", "--base", "the config does not say at which path the app is",
			"started with --base"}};
	char path[APP_ENTRY_MAX];
	const char *name = find_vite_config(look, path);
	auto_free char *text = NULL;

	if (!name)
		return;
	text = name[0] ? look->set->read(look->set->arg, path) : NULL;
	for (size_t i = 0; i < array_len(options); i++) {
		/* A command that somebody has said is started as it is. */
		bool is_told = strstr(part_of(look, ROLE_FRONTEND)->command, options[i].flag);

		if (!text || !strstr(text, options[i].text))
			add(look,
				&(struct finding){.file = name[0] ? path : NULL,
					.fix = is_told ? options[i].fix : NULL},
				options[i].message);
	}
	check_overlay(look, name, path, text);
}

static void check_polling_in(struct look *look, const char *dir)
{
	static const char *const names[] = {".env", "package.json"};

	for (size_t i = 0; i < array_len(names); i++) {
		auto_free char *path = file_set_join(dir, names[i]);
		auto_free char *text = file_set_read(look->set, dir, names[i]);
		const char *at = text ? strstr(text, "CHOKIDAR_USEPOLLING") : NULL;

		if (at)
			add(look, &(struct finding){.file = path, .line = file_set_line(text, at)},
				"CHOKIDAR_USEPOLLING is not needed: changes of files are seen "
				"without polling, which costs processor time");
	}
}

static void check_polling(struct look *look)
{
	check_polling_in(look, "");
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);

		if (part && part->dir[0])
			check_polling_in(look, part->dir);
	}
}

static void check_port_of(struct look *look, const struct app_part *part)
{
	auto_free char *path = file_set_join(part->dir, part->entry);
	auto_free char *text = look->set->read(look->set->arg, path);
	const char *at = NULL;
	uint16_t port = text ? code_port_find(text, part->framework->runtime, &at) : 0;
	char message[200];

	if (port == 0 || port == part->framework->port)
		return;
	snprintf(message, sizeof(message),
		"it listens on %u whatever PORT says: use %s, or say the port in sandlot.json",
		port,
		part->framework->runtime == RUNTIME_NODE ? "process.env.PORT"
							 : "os.environ[\"PORT\"]");
	add(look,
		&(struct finding){.file = path,
			.line = file_set_line(text, at),
			.fix = part->port == port ? "its preview is at that port" : NULL},
		message);
}

static void check_ports(struct look *look)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);

		if (part && part->entry[0] && !part->is_port_told)
			check_port_of(look, part);
	}
}

static bool is_source(const char *path)
{
	static const char *const ends[] = {
		".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte", ".html", ".astro"};

	for (size_t i = 0; i < array_len(ends); i++) {
		if (ends_with(path, ends[i]))
			return true;
	}
	return false;
}

/* Calls a function for each file that is one to be read, with its text. */
static void scan(struct look *look, bool (*is_wanted)(const char *path),
	void (*check)(struct look *look, const char *path, const char *text))
{
	unsigned count = 0;

	for (size_t i = 0; i < look->set->count; i++) {
		const char *path = look->set->paths[i];
		auto_free char *text = NULL;

		if (made_files_length(look->set, path) > 0 || !is_wanted(path) ||
			count++ >= SCAN_FILES)
			continue;
		text = look->set->read(look->set->arg, path);
		if (text)
			check(look, path, text);
	}
	if (count > SCAN_FILES) {
		char message[120];
		struct look more = *look;

		more.severity = INFO;
		more.found = 0;
		snprintf(message, sizeof(message),
			"of %u files that this rule is for, the first %d were looked at", count,
			SCAN_FILES);
		add(&more, &(struct finding){0}, message);
	}
}

static const char *const local_urls[] = {"http://localhost", "https://localhost",
	"http://127.0.0.1", "https://127.0.0.1", "ws://localhost", "wss://localhost",
	"ws://127.0.0.1", "http://0.0.0.0"};

static const char *find_local_url(const char *text)
{
	const char *at = NULL;

	for (size_t i = 0; i < array_len(local_urls) && !at; i++)
		at = strstr(text, local_urls[i]);
	return at;
}

static void check_local_url(struct look *look, const char *path, const char *text)
{
	const struct app_part *frontend = part_of(look, ROLE_FRONTEND);
	size_t len = frontend ? strlen(frontend->dir) : 0;

	if (!frontend ||
		(len > 0 && (strncmp(path, frontend->dir, len) != 0 || path[len] != '/')) ||
		strstr(path, ".config."))
		return;
	for (size_t i = 0; i < array_len(local_urls); i++) {
		const char *at = strstr(text, local_urls[i]);

		if (at)
			add(look, &(struct finding){.file = path, .line = file_set_line(text, at)},
				"an address on localhost is the visitor's own machine in a "
				"browser: use a "
				"relative address, or the preview of the backend's port");
	}
}

/* Whether a variable becomes part of the page: bundlers put in those whose names begin so. */
static bool is_of_page(const char *name)
{
	static const char *const begins[] = {"VITE_", "NEXT_PUBLIC_", "NUXT_PUBLIC_", "REACT_APP_",
		"VUE_APP_", "PUBLIC_", "GATSBY_", "EXPO_PUBLIC_"};

	name += strspn(name, " \t");
	if (strncmp(name, "export ", 7) == 0)
		name += 7 + strspn(name + 7, " \t");
	for (size_t i = 0; i < array_len(begins); i++) {
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	return false;
}

static void check_env_line(struct look *look, const char *path, const char *text, const char *line)
{
	auto_free char *entry = mem_printf("%.*s", (int)strcspn(line, "\n"), line);
	const char *name = entry + strspn(entry, " \t");
	char message[256];

	if (!is_of_page(entry) || !find_local_url(entry))
		return;
	snprintf(message, sizeof(message),
		"%.*s becomes part of the page, and localhost is the visitor's own machine in a "
		"browser: use a relative address, or the preview of the backend's port",
		(int)strcspn(name, "= \t") < 60 ? (int)strcspn(name, "= \t") : 60, name);
	add(look, &(struct finding){.file = path, .line = file_set_line(text, line)}, message);
}

/* Variables of the page; a server that reads the others is where localhost is. */
static void check_env_urls(struct look *look, const char *dir)
{
	static const char *const names[] = {
		".env", ".env.local", ".env.development", ".env.development.local"};

	for (size_t i = 0; i < array_len(names); i++) {
		auto_free char *path = file_set_join(dir, names[i]);
		auto_free char *text = file_set_read(look->set, dir, names[i]);

		for (const char *line = text; line && *line;
			line += strcspn(line, "\n"), line += *line == '\n')
			check_env_line(look, path, text, line);
	}
}

static void check_local_urls(struct look *look)
{
	const struct app_part *frontend = part_of(look, ROLE_FRONTEND);

	scan(look, is_source, check_local_url);
	if (frontend)
		check_env_urls(look, frontend->dir);
}

static void check_lock_of(struct look *look, const struct app_part *part)
{
	static const char *const groups[] = {"dependencies", "devDependencies"};
	json_auto_t *package = file_set_read_json(look->set, part->dir, "package.json");
	json_auto_t *lock = file_set_read_json(look->set, part->dir, "package-lock.json");
	const json_t *root = json_object_get(json_object_get(lock, "packages"), "");
	auto_free char *path = file_set_join(part->dir, "package-lock.json");

	if (!package || !json_is_object(root))
		return;
	for (size_t i = 0; i < array_len(groups); i++) {
		json_t *asked = json_object_get(package, groups[i]);
		json_t *locked = json_object_get(root, groups[i]);

		if (json_object_size(asked) == json_object_size(locked) &&
			(json_object_size(asked) == 0 || json_equal(asked, locked)))
			continue;
		add(look,
			&(struct finding){
				.file = path, .fix = "installed with npm install, not npm ci"},
			"the lock file does not fit package.json");
		return;
	}
}

/* Lock files in formats of their own: at least the names of all that is asked for must be there. */
static void check_names_in_lock(struct look *look, const struct app_part *part)
{
	static const char *const groups[] = {"dependencies", "devDependencies"};
	json_auto_t *package = file_set_read_json(look->set, part->dir, "package.json");
	auto_free char *text = file_set_read(look->set, part->dir, part->lock);
	auto_free char *path = file_set_join(part->dir, part->lock);

	for (size_t i = 0; text && i < array_len(groups); i++) {
		const char *name;
		json_t *version;

		json_object_foreach(json_object_get(package, groups[i]), name, version)
		{
			char message[200];

			if (strstr(text, name))
				continue;
			snprintf(message, sizeof(message),
				"the lock file does not fit package.json: it lacks %.100s", name);
			add(look, &(struct finding){.file = path}, message);
			return;
		}
	}
}

static void check_lock_of_python(struct look *look, const struct app_part *part)
{
	auto_free char *path = file_set_join(part->dir, part->lock);
	char name[LOCK_CHECK_NAME_MAX], message[LOCK_CHECK_NAME_MAX + 80];

	if (!lock_check_missing(look->set, part, name))
		return;
	snprintf(message, sizeof(message),
		"the lock file does not fit what the app asks for: it lacks %s", name);
	add(look, &(struct finding){.file = path}, message);
}

static void check_lock(struct look *look)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);

		if (!part || !part->lock)
			continue;
		if (part->framework->runtime == RUNTIME_PYTHON)
			check_lock_of_python(look, part);
		else if (part->framework->runtime != RUNTIME_NODE)
			continue;
		else if (strcmp(part->lock, "package-lock.json") == 0)
			check_lock_of(look, part);
		else if (strcmp(part->lock, "bun.lockb") != 0)
			check_names_in_lock(look, part);
	}
}

static bool is_shell_script(const char *path)
{
	return ends_with(path, ".sh") || ends_with(path, ".bash") || ends_with(path, "gradlew") ||
	       ends_with(path, "Procfile");
}

/* Files without an ending may be scripts as well, and those of Python and node may be started as programs. */
static bool may_be_script(const char *path)
{
	const char *name = strrchr(path, '/');

	return is_shell_script(path) || ends_with(path, ".py") || ends_with(path, ".js") ||
	       ends_with(path, ".mjs") || !strchr(name ? name : path, '.');
}

/* The first line that changes, before and after. */
static char *first_change(const char *text)
{
	int len = (int)strcspn(text, "\r\n");

	len = len > DIFF_LINE_MAX ? DIFF_LINE_MAX : len;
	return mem_printf("-%.*s\\r\n+%.*s\n", len, text, len, text);
}

static void check_line_ends(struct look *look, const char *path, const char *text)
{
	const char *at = strstr(text, "\r\n");
	struct buf made = BUF_INIT(FILE_SET_TEXT_MAX);
	auto_free char *diff = NULL, *fixed = NULL;

	if (!at || (!is_shell_script(path) && strncmp(text, "#!", 2) != 0))
		return;
	for (const char *c = text; *c; c++) {
		if (c[0] != '\r' || c[1] != '\n')
			buf_append(&made, c, 1);
	}
	diff = first_change(text);
	fixed = buf_take_str(&made);
	if (json_object_set_new(look->to->fixes, path, json_string(fixed)) < 0)
		return; /* no text */
	add(look,
		&(struct finding){.file = path,
			.line = file_set_line(text, at),
			.fix = "the copy has line ends of Unix",
			.diff = diff},
		"a script with line ends of Windows does not run: its first line names a program "
		"that "
		"is not there");
}

static void check_scripts(struct look *look)
{
	scan(look, may_be_script, check_line_ends);
}

/* Each directory once. */
static void check_made_files(struct look *look)
{
	char last[APP_ENTRY_MAX] = "";

	for (size_t i = 0; i < look->set->count; i++) {
		const char *path = look->set->paths[i];
		size_t len = made_files_length(look->set, path);
		char dir[APP_ENTRY_MAX];

		if (len == 0)
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)len, path);
		if (strcmp(dir, last) != 0)
			add(look, &(struct finding){.file = dir, .fix = "left out of the copy"},
				"files that installing makes were uploaded: they may not fit what "
				"runs here");
		memcpy(last, dir, sizeof(last));
	}
}

/* How secrets begin, and how many characters of them must follow. */
static const struct {
	const char *begin, *what;
	unsigned length;
} secrets[] = {
	{"-----BEGIN RSA PRIVATE KEY-----", "a private key", 0},
	{"-----BEGIN PRIVATE KEY-----", "a private key", 0},
	{"-----BEGIN EC PRIVATE KEY-----", "a private key", 0},
	{"-----BEGIN OPENSSH PRIVATE KEY-----", "a private key", 0},
	{"AKIA", "an access key of AWS", 16},
	{"ghp_", "a token of GitHub", 36},
	{"github_pat_", "a token of GitHub", 40},
	{"glpat-", "a token of GitLab", 20},
	{"sk-", "a key of an API", 32},
	{"xoxb-", "a token of Slack", 20},
	{"sk_live_", "a key of Stripe", 20},
};

static void check_secret(struct look *look, const char *path, const char *text)
{
	for (size_t i = 0; i < array_len(secrets); i++) {
		size_t begin = strlen(secrets[i].begin);

		for (const char *at = text; (at = strstr(at, secrets[i].begin)); at += begin) {
			char message[160];
			unsigned n = 0;

			while (isalnum((unsigned char)at[begin + n]) || at[begin + n] == '_' ||
				at[begin + n] == '-')
				n++;
			if (n < secrets[i].length || (at > text && isalnum((unsigned char)at[-1])))
				continue;
			snprintf(message, sizeof(message),
				"this looks like %s: keep it as a secret of the daemon, which "
				"sandboxes use without seeing it",
				secrets[i].what);
			add(look, &(struct finding){.file = path, .line = file_set_line(text, at)},
				message);
			break;
		}
	}
}

static bool may_hold_secret(const char *path)
{
	return !ends_with(path, "-lock.json") && !ends_with(path, ".lock") &&
	       !ends_with(path, ".png") && !ends_with(path, ".jpg") && !ends_with(path, ".woff2");
}

static void check_secrets(struct look *look)
{
	scan(look, may_hold_secret, check_secret);
}

static const struct {
	const char *name;
	enum severity severity;
	void (*check)(struct look *look);
} rules[] = {
	{"settings", WARNING, check_settings}, /* its problems have severities of their own */
	{"start_script", ERROR, check_start_script},
	{"requirements", WARNING, check_requirements},
	{"vite_config", INFO, check_vite},
	{"polling", INFO, check_polling},
	{"port", WARNING, check_ports},
	{"localhost_url", WARNING, check_local_urls},
	{"lock_file", WARNING, check_lock},
	{"line_ends", WARNING, check_scripts},
	{"made_files", WARNING, check_made_files},
	{"secret", WARNING, check_secrets},
};

void validation_make(const struct file_set *set, const struct detection *detection,
	struct validation *ret_validation)
{
	*ret_validation = (struct validation){.findings = json_array(), .fixes = json_object()};
	for (size_t i = 0; i < array_len(rules); i++) {
		struct look look = {.set = set,
			.detection = detection,
			.to = ret_validation,
			.rule = rules[i].name,
			.severity = rules[i].severity};

		rules[i].check(&look);
	}
}

void validation_fini(struct validation *validation)
{
	json_decref(validation->findings);
	json_decref(validation->fixes);
}
