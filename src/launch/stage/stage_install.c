/* SPDX-License-Identifier: Apache-2.0 */
/* The stages that make an app able to run: its packages, and whether it can be parsed. */
#include "blob/digest.h"
#include "core/process/danger_gate.h"
#include "launch/app/requirements.h"
#include "launch/stage/installer.h"
#include "launch/stage/package_layer.h"
#include "launch/stage/part_state.h"
#include "launch/stage/part_versions.h"
#include "launch/stage/pipeline.h"
#include "model/sandbox/sandbox_spec.h"

#include <stdio.h>
#include <string.h>

#define CHECK_S 60

static char *read_input(const struct file_set *files, const char *dir, const char *name)
{
	size_t len = strlen(name);

	/* Requirements go on in the files that they name. */
	return len > 4 && strcmp(name + len - 4, ".txt") == 0 ? requirements_read(files, dir, name)
							      : file_set_read(files, dir, name);
}

/* What is installed follows from these files. */
static void hash_inputs(
	const struct pipeline *pipeline, const struct app_part *part, char text[DIGEST_LEN + 1])
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	const char *const names[] = {part->manifest, part->lock, ".npmrc"};
	struct digest digest;

	digest_stream_add(hash, part->install, strlen(part->install) + 1);
	for (size_t i = 0; i < array_len(names); i++) {
		auto_free char *content =
			names[i] ? read_input(&pipeline->files, part->dir, names[i]) : NULL;

		if (content)
			digest_stream_add(hash, content, strlen(content));
		digest_stream_add(hash, "", 1);
	}
	digest_stream_read(hash, &digest);
	snprintf(text, DIGEST_LEN + 1, "%s", digest_hex(&digest));
}

static bool has_dependencies(const struct pipeline *pipeline, const struct app_part *part)
{
	json_auto_t *package = NULL;

	if (part->framework->runtime != RUNTIME_NODE)
		return part->manifest != NULL;
	package = file_set_read_json(&pipeline->files, part->dir, "package.json");
	return json_object_size(json_object_get(package, "dependencies")) > 0 ||
	       json_object_size(json_object_get(package, "devDependencies")) > 0;
}

#define MARK	  ".sandlot-installed"
#define IS_THERE  99 /* what a command ends with: the packages are installed */
#define IS_COPIED 98 /* they were taken from a layer */

/* The command that installs a part's packages, or copies them with `copy`, unless a mark says that they are there. */
static char *make_line(const struct app_part *part, const struct installer *installer,
	const char *digest, const char *copy)
{
	const char *place = installer ? installer->place : ".sandlot";
	auto_free char *first =
		copy ? mem_printf("( %s ) && echo %s > $mark && exit %d; ", copy, digest, IS_COPIED)
		     : mem_strdup("");

	return mem_printf("mark=%s/" MARK "; [ \"$(cat $mark 2>/dev/null)\" = %s ] && exit %d; %s"
			  "( %s ) && mkdir -p %s && echo %s > $mark",
		place, digest, IS_THERE, first, part->install[0] ? part->install : installer->line,
		place, digest);
}

/* Whether others may want a layer of what was installed: pip may have found all of it in the template. */
static bool is_worth_sharing(const struct package_layer *layer, const char *tail)
{
	return !layer->reason &&
	       (!layer->texts[DEPENDENCY_REQUIREMENTS] || strstr(tail, "Successfully installed"));
}

/* What came of the command. */
static int judge_install(struct pipeline *pipeline, enum app_role role,
	const struct package_layer *layer, const struct sandbox_command_end *end)
{
	const char *name = framework_role_name(role);

	if (end->exit_code == IS_THERE) {
		pipeline_log(pipeline, "the packages of %s are installed already", name);
		return PIPELINE_SKIPPED;
	}
	if (end->exit_code == IS_COPIED) {
		pipeline_log(pipeline,
			"the packages of %s are copied from a layer that an earlier launch made",
			name);
		return 0;
	}
	if (end->is_timeout) {
		pipeline_keep_lines(pipeline, end->tail);
		return pipeline_fail(pipeline, "install_timeout",
			"give it more time with timeouts.install_s, or for all launches with the "
			"setting launch-install-timeout",
			"installing took longer than %llu s",
			(unsigned long long)pipeline_timeout_ms(pipeline, LAUNCH_WAIT_INSTALL) /
				1000);
	}
	if (end->exit_code != 0)
		return pipeline_fail_by_end(pipeline, &end->how, end->tail);
	pipeline->is_installed[role] = is_worth_sharing(layer, end->tail);
	if (layer->reason)
		pipeline_log(
			pipeline, "the packages of %s are not shared: %s", name, layer->reason);
	else if (pipeline->is_installed[role])
		pipeline_log(pipeline,
			"a layer of the packages of %s is made when this launch is over", name);
	return 0;
}

/* A command of the app's own, as its start command is looked at. Nobody is there who could confirm it. */
static int look_for_danger(struct pipeline *pipeline, const struct app_part *part, struct err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", part->install, NULL};
	struct danger_verdict verdict = {0};
	char names[DANGER_NAMES_MAX];
	int r = danger_gate_ask(pipeline->engine,
		&(struct danger_question){.argv = argv,
			.owner = &pipeline->record.owner,
			.sandbox = pipeline->record.sandbox_id,
			.is_confirmed = true},
		&verdict, err);

	if (r == 0 && verdict.flags) {
		danger_names(verdict.flags, names);
		pipeline_log(pipeline, "the command looks dangerous: %s", names);
	}
	return r;
}

/*
 * What the request says for the app is for its installers too: a registry, say, or the CA of one. With NODE_ENV they would
 * leave out what the app is started and checked with.
 */
static struct text_map install_env(
	const struct pipeline *pipeline, struct text_pair pairs[SPEC_START_ENV_MAX])
{
	json_t *given = json_object_get(pipeline->input, "env"), *value;
	struct text_map env = {.pairs = pairs};
	const char *name;

	json_object_foreach(given, name, value)
	{
		if (env.count < SPEC_START_ENV_MAX && strcmp(name, "NODE_ENV") != 0)
			pairs[env.count++] = (struct text_pair){name, json_string_value(value)};
	}
	return env;
}

static int install_part(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	struct app_part *part = &pipeline->detection.parts[role];
	const struct installer *installer = installer_find(part->package_manager);
	struct text_pair pairs[SPEC_START_ENV_MAX];
	struct package_layer layer;
	char digest[DIGEST_LEN + 1];
	auto_free char *line = NULL;
	struct sandbox_command_end end;
	int r;

	if (!part->install[0] && (!installer || !has_dependencies(pipeline, part)))
		return PIPELINE_SKIPPED;
	r = part->install[0] ? look_for_danger(pipeline, part, err) : 0;
	if (r < 0)
		return r;
	hash_inputs(pipeline, part, digest);
	package_layer_read(&pipeline->files, part, &layer);
	line = make_line(part, installer, digest, package_layer_lend(pipeline, &layer));
	r = pipeline_command_fed(pipeline, part->dir, line,
		installer && !part->install[0] ? installer->input : NULL,
		install_env(pipeline, pairs), pipeline_timeout_ms(pipeline, LAUNCH_WAIT_INSTALL),
		&end, err);
	if (r == 0)
		r = judge_install(pipeline, role, &layer, &end);
	package_layer_fini(&layer);
	return r;
}

/* Calls a function for each part: what the first says that fails; skipped if all were. */
static int each_part(struct pipeline *pipeline,
	int (*run)(struct pipeline *pipeline, enum app_role role, struct err *err), struct err *err)
{
	int result = PIPELINE_SKIPPED;

	for (int role = 0; role < ROLE_COUNT; role++) {
		int r = pipeline->detection.has_part[role] ? run(pipeline, role, err)
							   : PIPELINE_SKIPPED;

		if (r < 0)
			return r;
		if (r == 0)
			result = 0;
	}
	return result;
}

int stage_install(struct pipeline *pipeline, struct err *err)
{
	return each_part(pipeline, install_part, err);
}

/* --- PostInstallChecks --- */

/* npm puts the packages of a workspace above it. Hidden files are not packages. */
#define HAS_MODULES                                                                                \
	"( for at in node_modules ../node_modules; do "                                            \
	"[ -z \"$(ls $at 2>/dev/null)\" ] || exit 0; done; exit 1 )"
/* What is not there after all is installed by the next launch: without this its mark would say that it is. */
#define FORGET(place) " || { rm -f " place "/" MARK "; exit 1; }"

static int check_part(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	struct sandbox_command_end end;
	bool is_node = part->framework->runtime == RUNTIME_NODE;
	int r;

	if (part->framework->runtime == RUNTIME_STATIC || part->install[0] ||
		!has_dependencies(pipeline, part))
		return PIPELINE_SKIPPED;
	r = pipeline_command(pipeline, part->dir,
		is_node ? HAS_MODULES FORGET("node_modules")
			: INSTALLER_VENV "python3 -m pip list >/dev/null" FORGET(".venv"),
		CHECK_S * 1000, &end, err);
	if (r < 0 || end.exit_code == 0)
		return r;
	pipeline_keep_lines(pipeline, end.tail);
	return pipeline_fail(pipeline, "install_incomplete", "read the log of InstallDependencies",
		"%s", is_node ? "node_modules is empty" : "pip list fails");
}

int stage_check_install(struct pipeline *pipeline, struct err *err)
{
	int r = each_part(pipeline, check_part, err);

	if (r >= 0)
		part_versions_note(pipeline);
	return r;
}

/* --- SyntaxCheck --- */

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

extern const char typescript_check_js[];

#define CANNOT_PARSE 90 /* what that script ends with where nothing is there for it */

/* What parses an entry file, by its ending; a script is read from standard input. */
static const struct {
	const char *end, *before, *script;
} parsers[] = {
	{".js", "node --check", NULL},
	{".mjs", "node --check", NULL},
	{".cjs", "node --check", NULL},
	{".py", "PYTHONPYCACHEPREFIX=/tmp/pycache python3 -m py_compile", NULL},
	{".ts", "node --no-warnings -", typescript_check_js},
	{".tsx", "node --no-warnings -", typescript_check_js},
	{".mts", "node --no-warnings -", typescript_check_js},
	{".cts", "node --no-warnings -", typescript_check_js},
};

static int run_parser(
	struct pipeline *pipeline, const struct app_part *part, size_t parser, struct err *err)
{
	auto_free char *line = mem_printf("%s './%s'", parsers[parser].before, part->entry);
	struct sandbox_command_end end;
	int r = pipeline_command_fed(pipeline, part->dir, line, parsers[parser].script,
		(struct text_map){0}, CHECK_S * 1000, &end, err);

	if (r < 0 || end.exit_code == 0)
		return r;
	if (parsers[parser].script && end.exit_code == CANNOT_PARSE) {
		pipeline_log(pipeline,
			"nothing here can parse %s before it is started: have typescript or "
			"esbuild among the packages for that",
			part->entry);
		return PIPELINE_SKIPPED;
	}
	return pipeline_fail_by_output(pipeline, end.tail);
}

static int parse_part(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];

	if (!part->entry[0] || strpbrk(part->entry, "'\\"))
		return PIPELINE_SKIPPED;
	for (size_t i = 0; i < array_len(parsers); i++) {
		if (ends_with(part->entry, parsers[i].end))
			return run_parser(pipeline, part, i, err);
	}
	return PIPELINE_SKIPPED;
}

/* Whether a script runs a program with its option for a tsconfig.json that only refers to others. */
static bool builds_with(const char *script, const char *program)
{
	static const char *const options[] = {" -b", " --build"};
	size_t len = strlen(program);

	for (const char *at = script; (at = strstr(at, program)); at += len) {
		if (at > script && !strchr(" &;(/", at[-1]))
			continue;
		for (size_t i = 0; i < array_len(options); i++) {
			size_t end = len + strlen(options[i]);

			if (strncmp(at + len, options[i], strlen(options[i])) == 0 &&
				(!at[end] || at[end] == ' '))
				return true;
		}
	}
	return false;
}

/*
 * The line that checks types. Where tsconfig.json only refers to others, as generators make it, tsc by itself looks at
 * nothing: the scripts of the app say by what it is built then.
 */
static const char *type_check_line(const json_t *package)
{
	static const struct {
		const char *program, *line;
	} builders[] = {{"vue-tsc", "[ -x node_modules/.bin/vue-tsc ] || exit 0; "
				    "exec node_modules/.bin/vue-tsc -b --noEmit"},
		{"tsc", "[ -x node_modules/.bin/tsc ] || exit 0; "
			"exec node_modules/.bin/tsc -b --noEmit"}};
	const char *name;
	json_t *script;

	for (size_t i = 0; i < array_len(builders); i++) {
		json_object_foreach(json_object_get(package, "scripts"), name, script)
		{
			if (json_is_string(script) &&
				builds_with(json_string_value(script), builders[i].program))
				return builders[i].line;
		}
	}
	return "[ -x node_modules/.bin/tsc ] || exit 0; exec node_modules/.bin/tsc --noEmit";
}

/* A development server runs with wrong types, so they are told and nothing more. */
static int check_types(
	struct pipeline *pipeline, enum app_role role, int *ret_exit_code, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	json_auto_t *package = NULL;
	struct sandbox_command_end end;
	int r;

	if (part->framework->runtime != RUNTIME_NODE ||
		!file_set_has(&pipeline->files, part->dir, "tsconfig.json"))
		return PIPELINE_SKIPPED;
	package = file_set_read_json(&pipeline->files, part->dir, "package.json");
	r = pipeline_command(
		pipeline, part->dir, type_check_line(package), CHECK_S * 1000, &end, err);
	if (r == 0 && end.is_timeout)
		pipeline_log(pipeline,
			"tsc took longer than %d s and is not waited for; the app is started all "
			"the "
			"same",
			CHECK_S);
	else if (r == 0 && end.exit_code != 0)
		pipeline_log(pipeline, "tsc found errors; the app is started all the same");
	if (r == 0)
		*ret_exit_code = end.is_timeout ? 1 : end.exit_code;
	return r;
}

static int check_sources(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	int parsed, types, exit_code = 0;
	int r = part_state_read(pipeline, role, err);

	if (r < 0)
		return r;
	if (!pipeline->is_forced && part_state_is_checked(&pipeline->states[role])) {
		pipeline_log(pipeline, "%s: nothing has changed since it was checked",
			framework_role_name(role));
		return PIPELINE_SKIPPED;
	}
	parsed = parse_part(pipeline, role, err);
	if (parsed < 0)
		return parsed;
	types = check_types(pipeline, role, &exit_code, err);
	if (types < 0)
		return types;
	if (parsed == PIPELINE_SKIPPED && types == PIPELINE_SKIPPED)
		return PIPELINE_SKIPPED;
	/* Errors are told at each launch. */
	return exit_code == 0 ? part_state_note_check(pipeline, role, err) : 0;
}

int stage_check_syntax(struct pipeline *pipeline, struct err *err)
{
	return each_part(pipeline, check_sources, err);
}
