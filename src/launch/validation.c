/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/validation.h"

#include "base/buf.h"

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

/* --- files that installing makes --- */

static const char *const made_directories[] = {
	"node_modules", ".venv", "venv", "__pycache__", ".next", ".nuxt"};

bool validation_leaves_out(const char *path)
{
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");

		for (size_t i = 0; i < array_len(made_directories) && at[len] == '/'; i++) {
			if (strlen(made_directories[i]) == len &&
				strncmp(made_directories[i], at, len) == 0)
				return true;
		}
		at += len + (at[len] == '/');
	}
	return false;
}

/* --- rules --- */

static void check_start_script(struct look *look)
{
	if (!detection_primary(look->detection)) {
		add(look, &(struct finding){0},
			"nothing was found that can be started: no package.json, no main.py, "
			"app.py, "
			"manage.py or server.py, no index.html");
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

static const char *find_vite_config(const struct look *look, char path[APP_ENTRY_MAX])
{
	static const char *const names[] = {
		"vite.config.ts", "vite.config.js", "vite.config.mjs", "vite.config.mts"};
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

/* Command line flags win over what the config says, so nothing of it is rewritten. */
static void check_vite(struct look *look)
{
	static const struct {
		const char *text, *message, *fix;
	} options[] = {{"host", "the config does not say on which address to listen",
			       "started with --host 127.0.0.1"},
		{"port", "the config does not say which port",
			"started with --port and --strictPort, so that it does not move to "
			"another"},
		{"base", "the config does not say at which path the app is",
			"started with --base"}};
	char path[APP_ENTRY_MAX];
	const char *name = find_vite_config(look, path);
	auto_free char *text = NULL;

	if (!name)
		return;
	text = name[0] ? look->set->read(look->set->arg, path) : NULL;
	for (size_t i = 0; i < array_len(options); i++) {
		if (!text || !strstr(text, options[i].text))
			add(look,
				&(struct finding){
					.file = name[0] ? path : NULL, .fix = options[i].fix},
				options[i].message);
	}
}

static void check_polling(struct look *look)
{
	static const char *const names[] = {".env", "package.json"};

	for (size_t i = 0; i < array_len(names); i++) {
		auto_free char *text = file_set_read(look->set, "", names[i]);
		const char *at = text ? strstr(text, "CHOKIDAR_USEPOLLING") : NULL;

		if (at)
			add(look,
				&(struct finding){
					.file = names[i], .line = file_set_line(text, at)},
				"CHOKIDAR_USEPOLLING is not needed: changes of files are seen "
				"without "
				"polling, which costs processor time");
	}
}

static void check_ports(struct look *look)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);
		auto_free char *path = NULL, *text = NULL;
		const char *at;
		char message[160];
		unsigned long port;

		if (!part || part->framework->runtime != RUNTIME_NODE || part->framework->flags ||
			!part->entry[0])
			continue;
		path = file_set_join(part->dir, part->entry);
		text = look->set->read(look->set->arg, path);
		at = text ? strstr(text, ".listen(") : NULL;
		if (!at || strstr(text, "process.env.PORT") ||
			!isdigit((unsigned char)at[strlen(".listen(")]))
			continue;
		port = strtoul(at + strlen(".listen("), NULL, 10);
		if (port == part->port)
			continue;
		snprintf(message, sizeof(message),
			"it listens on %lu, not on PORT, which is %u: use process.env.PORT, or say "
			"the port in sandlot.json",
			port, part->port);
		add(look, &(struct finding){.file = path, .line = file_set_line(text, at)},
			message);
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

	for (size_t i = 0; i < look->set->count && count < SCAN_FILES; i++) {
		const char *path = look->set->paths[i];
		auto_free char *text = NULL;

		if (validation_leaves_out(path) || !is_wanted(path))
			continue;
		count++;
		text = look->set->read(look->set->arg, path);
		if (text)
			check(look, path, text);
	}
}

static void check_local_url(struct look *look, const char *path, const char *text)
{
	static const char *const urls[] = {
		"http://localhost:", "http://127.0.0.1:", "https://localhost:"};
	const struct app_part *frontend = part_of(look, ROLE_FRONTEND);
	size_t len = frontend ? strlen(frontend->dir) : 0;

	if (!frontend ||
		(len > 0 && (strncmp(path, frontend->dir, len) != 0 || path[len] != '/')) ||
		strstr(path, ".config."))
		return;
	for (size_t i = 0; i < array_len(urls); i++) {
		const char *at = strstr(text, urls[i]);

		if (at)
			add(look, &(struct finding){.file = path, .line = file_set_line(text, at)},
				"an address on localhost is the visitor's own machine in a "
				"browser: use a "
				"relative address, or the preview of the backend's port");
	}
}

static void check_local_urls(struct look *look)
{
	scan(look, is_source, check_local_url);
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

static void check_lock(struct look *look)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = part_of(look, role);

		if (part && part->lock && strcmp(part->lock, "package-lock.json") == 0)
			check_lock_of(look, part);
	}
}

static bool is_shell_script(const char *path)
{
	return ends_with(path, ".sh") || ends_with(path, "gradlew") || ends_with(path, "Procfile");
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

	if (!at)
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
	scan(look, is_shell_script, check_line_ends);
}

static void check_made_files(struct look *look)
{
	char last[APP_ENTRY_MAX] = "";

	for (size_t i = 0; i < look->set->count; i++) {
		const char *path = look->set->paths[i];
		char dir[APP_ENTRY_MAX];

		if (!validation_leaves_out(path))
			continue;
		for (size_t j = 0; j < array_len(made_directories); j++) {
			const char *at = strstr(path, made_directories[j]);

			if (!at)
				continue;
			snprintf(dir, sizeof(dir), "%.*s",
				(int)(at - path + (ptrdiff_t)strlen(made_directories[j])), path);
			if (strcmp(dir, last) != 0)
				add(look,
					&(struct finding){
						.file = dir, .fix = "left out of the copy"},
					"files that installing makes were uploaded: they may not "
					"fit what "
					"runs here");
			memcpy(last, dir, sizeof(last));
			break;
		}
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
