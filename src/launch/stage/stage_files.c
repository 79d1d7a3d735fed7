/* SPDX-License-Identifier: Apache-2.0 */
/* The stages that have to do with files: what the app is, its copy, and its variables. */
#include "base/buf.h"
#include "core/files/file_channel.h"
#include "core/sandbox/sandbox_request.h"
#include "core/template/build/build_sandbox.h"
#include "launch/app/made_files.h"
#include "launch/app/project_set.h"
#include "launch/stage/env_file.h"
#include "launch/stage/pipeline.h"
#include "model/sandbox/sandbox_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_MS	 20000
#define LIST_MAX (16u << 20)
#define COPY_MS	 120000
#define ENV_MADE ".sandlot/env" /* what env_file.h compares with, in the directory of a part */

/* --- the files of a sandbox --- */

static char *read_in_sandbox(void *arg, const char *path)
{
	struct pipeline *pipeline = arg;
	struct build_sandbox box = {.engine = pipeline->engine,
		.owner = &pipeline->record.owner,
		.job = pipeline->job,
		.sandbox = pipeline->sandbox};
	auto_free char *whole = file_set_join(PIPELINE_APP, path);
	struct err ignored;
	char *text;

	return build_sandbox_load(&box, whole, FILE_SET_TEXT_MAX, &text, &ignored) < 0 ? NULL
										       : text;
}

static bool is_of_app(const struct file_set *files, const char *path)
{
	return made_files_length(files, path) == 0;
}

/* Takes the paths of an output; false if there are too many. */
static bool take_paths(struct file_set *files, char *text)
{
	char *state = NULL;

	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		if (strncmp(line, "./", 2) == 0 && !file_set_add(files, line + 2))
			return false;
	}
	file_set_sort(files);
	/* Which environments there are is known only now. */
	file_set_keep(files, is_of_app);
	return true;
}

/* What is in its directory for the app; files that were installed are not looked at. */
static int list_in_sandbox(struct pipeline *pipeline, struct err *err)
{
	struct buf output = BUF_INIT(LIST_MAX);
	struct sandbox_command command = {.line = "mkdir -p " PIPELINE_APP " && cd " PIPELINE_APP
						  " && find . -name node_modules -prune -o -name "
						  ".git -prune -o -name .venv -prune"
						  " -o -name .sandlot -prune -o -type f -print",
		.cwd = "/",
		.timeout_ms = LIST_MS,
		.output = &output};
	struct sandbox_command_end end;
	int r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);
	bool is_whole = !output.failed;
	auto_free char *text = buf_take_str(&output);

	if (r == 0 && end.exit_code != 0)
		r = pipeline_fail_by_output(pipeline, end.tail);
	if (r < 0)
		return r;
	if (!is_whole || !take_paths(&pipeline->files, text))
		return pipeline_fail(pipeline, "too_many_files", "remove some", FILE_SET_TOO_MANY,
			FILE_SET_PATHS_MAX);
	pipeline->files.read = read_in_sandbox;
	pipeline->files.arg = pipeline;
	return 0;
}

/* --- DetectEntryPoint --- */

static void tell_parts(struct pipeline *pipeline)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const struct app_part *part = &pipeline->detection.parts[role];

		if (pipeline->detection.has_part[role])
			pipeline_log(pipeline, "%s: %s in %s, port %u", framework_role_name(role),
				part->framework->name, part->dir[0] ? part->dir : "/", part->port);
	}
}

static void tell_services(struct pipeline *pipeline)
{
	json_t *found = json_object_get(pipeline->detection.document, "services"), *service;
	size_t i;

	json_array_foreach(found, i, service)
	{
		const json_t *why = json_array_get(json_object_get(service, "evidence"), 0);

		pipeline_log(pipeline, "service: %s, as %s %s",
			json_string_value(json_object_get(service, "name")),
			json_string_value(json_object_get(why, "file")),
			json_string_value(json_object_get(why, "why")));
	}
}

/* A config that was made for it is the one it is started with. */
static void use_made_config(struct pipeline *pipeline)
{
	struct app_part *part = &pipeline->detection.parts[ROLE_FRONTEND];
	auto_free char *path = file_set_join(part->dir, VALIDATION_VITE_CONFIG);

	if (pipeline->detection.has_part[ROLE_FRONTEND] &&
		json_object_get(pipeline->validation.fixes, path))
		part->config = VALIDATION_VITE_CONFIG;
}

static const char *text_of(const json_t *finding, const char *name)
{
	const char *text = json_string_value(json_object_get(finding, name));

	return text ? text : "";
}

/* "src/main.js:3: " and what was found there. */
static char *format_finding(const json_t *finding)
{
	json_int_t line = json_integer_value(json_object_get(finding, "line"));
	const char *file = text_of(finding, "file"), *message = text_of(finding, "message");

	return line > 0	 ? mem_printf("%s:%d: %s", file, (int)line, message)
	       : file[0] ? mem_printf("%s: %s", file, message)
			 : mem_strdup(message);
}

static void tell_findings(struct pipeline *pipeline)
{
	json_t *finding;
	size_t i;

	json_array_foreach(pipeline->validation.findings, i, finding)
	{
		auto_free char *text = format_finding(finding);

		if (strcmp(text_of(finding, "severity"), "info") != 0)
			pipeline_log(pipeline, "%s: %s", text_of(finding, "severity"), text);
	}
}

/* An app of which a rule says that it cannot run. */
static int fail_by_finding(struct pipeline *pipeline)
{
	const struct app_part *primary = detection_primary(&pipeline->detection);
	const json_t *found = json_object_get(pipeline->detection.document, "frameworks");
	auto_free char *text = NULL;
	json_t *finding, *error = NULL;
	size_t i;

	json_array_foreach(pipeline->validation.findings, i, finding)
	{
		if (!error && strcmp(text_of(finding, "severity"), "error") == 0)
			error = finding;
	}
	text = format_finding(error);
	if (strcmp(text_of(error, "rule"), "settings") == 0)
		return pipeline_fail(pipeline, "invalid_settings",
			"correct " APP_SETTINGS_FILE ", or remove it", "%s", text);
	return pipeline_fail(pipeline, primary ? "missing_script" : "no_entry_point",
		!primary && json_array_size(found) > 0
			? "leave out one part at most"
			: "add one, or say the command in " APP_SETTINGS_FILE,
		"%s", text_of(error, "message"));
}

int stage_detect(struct pipeline *pipeline, struct err *err)
{
	int r = pipeline->record.project[0]
			? project_set_open(pipeline->projects, &pipeline->record.owner,
				  pipeline->record.project, &pipeline->files, err)
			: list_in_sandbox(pipeline, err);

	if (r == 0)
		r = detection_make(&pipeline->files, pipeline->input, &pipeline->detection, err);
	if (r < 0)
		return r;
	validation_make(&pipeline->files, &pipeline->detection, &pipeline->validation);
	json_object_set(pipeline->record.document, "detection", pipeline->detection.document);
	json_object_set(pipeline->record.document, "findings", pipeline->validation.findings);
	tell_findings(pipeline);
	if (pipeline->validation.has_error || !detection_primary(&pipeline->detection))
		return fail_by_finding(pipeline);
	use_made_config(pipeline);
	tell_parts(pipeline);
	tell_services(pipeline);
	return 0;
}

/* --- MaterializeFiles --- */

/* The text of a file of the copy; *ret_text is NULL if there is none. */
static int read_copy(struct pipeline *pipeline, const char *dir, const char *name, char **ret_text,
	struct err *err)
{
	auto_free char *path = file_set_join(dir, name);
	auto_free char *whole = file_set_join(PIPELINE_APP, path);
	size_t len;
	int r = file_channel_load(pipeline->sandbox, whole, FILE_SET_TEXT_MAX, ret_text, &len, err);

	return r < 0 && err->kind == ERR_NOT_FOUND ? 0 : r;
}

/* A page's files are all served, so none with variables is put beside them. */
static bool has_env_file(const struct pipeline *pipeline, enum app_role role)
{
	return pipeline->detection.has_part[role] &&
	       pipeline->detection.parts[role].framework->runtime != RUNTIME_STATIC;
}

/* What stands in the .env of a part, before anything is copied over it. */
static int read_env(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const char *dir = pipeline->detection.parts[role].dir;
	struct pipeline_env_file *texts = &pipeline->env_files[role];
	int r = 0;

	if (has_env_file(pipeline, role))
		r = read_copy(pipeline, dir, ".env", &texts->copy, err);
	if (r == 0 && has_env_file(pipeline, role))
		r = read_copy(pipeline, dir, ENV_MADE, &texts->made, err);
	if (r < 0)
		return r;
	texts->project = !pipeline->record.project[0] && texts->copy
				 ? mem_strdup(texts->copy)
				 : file_set_read(&pipeline->files, dir, ".env");
	if (!texts->project && file_set_has(&pipeline->files, dir, ".env"))
		return pipeline_fail(pipeline, "env_too_large", "take something out of it",
			".env of the project cannot be read, or is too large");
	return 0;
}

/* The paths of the files that are not copied, since they are joined with those that are there. */
static char *list_env_files(const struct pipeline *pipeline)
{
	struct buf list = BUF_INIT(2 * APP_DIRECTORY_MAX + 64);

	for (int role = 0; role < ROLE_COUNT; role++) {
		auto_free char *path = file_set_join(pipeline->detection.parts[role].dir, ".env");

		buf_printf(&list, "%s\n", has_env_file(pipeline, role) ? path : ENV_MADE);
	}
	return buf_take_str(&list);
}

/*
 * Makes the copy what the list on its input says: lines of "<sha256> <path>". Files that an earlier launch copied and
 * that are gone are removed; what the app itself made stays, and so does what did not change.
 */
static const char copy_script[] =
	"set -eu; export LC_ALL=C; state=.sandlot; mkdir -p " PIPELINE_APP "/$state;"
	"cd " PIPELINE_APP
	"; sort > $state/new; touch $state/files; printf %s \"$APART\" > $state/apart;"
	"if [ -s $state/files ]; then"
	"  cut -d' ' -f2- $state/files | sort > $state/had; cut -d' ' -f2- $state/new | sort > "
	"$state/has;"
	"  comm -23 $state/had $state/has | grep -vxFf $state/apart | tr '\\n' '\\0' |"
	"   xargs -0 -r rm -f --; fi;"
	/* A name may begin as an option does, which tar would take for one. */
	"comm -13 $state/files $state/new | cut -d' ' -f2- | grep -vxFf $state/apart |"
	" sed 's|^|./|' > $state/changed;"
	"if [ -s $state/changed ]; then"
	"  tar -C /workspace/project_files -cf - -T $state/changed | tar -xf - --no-same-owner;"
	"  tr '\\n' '\\0' < $state/changed | xargs -0 chmod u+rw --; fi;"
	"mv $state/new $state/files; wc -l < $state/changed; wc -l < $state/files";

static int copy_project(struct pipeline *pipeline, struct err *err)
{
	auto_free char *list = project_set_list(&pipeline->files);
	auto_free char *apart = list_env_files(pipeline);
	const struct text_pair env[] = {{"APART", apart}};
	struct buf output = BUF_INIT(4096);
	struct sandbox_command command = {.line = copy_script,
		.cwd = "/",
		.env = {.pairs = env, .count = 1},
		.input = list,
		.timeout_ms = COPY_MS,
		.output = &output};
	struct sandbox_command_end end;
	unsigned changed = 0, all = 0;
	int r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);
	auto_free char *text = buf_take_str(&output);

	if (r == 0 && end.exit_code != 0)
		r = pipeline_fail_by_output(pipeline, end.tail);
	if (r == 0 && sscanf(text, "%u %u", &changed, &all) == 2)
		pipeline_log(pipeline, "%u of %u files are new or changed", changed, all);
	return r;
}

static int apply_fixes(struct pipeline *pipeline, struct err *err)
{
	const char *path;
	json_t *text;
	int r = 0;

	json_object_foreach(pipeline->validation.fixes, path, text)
	{
		auto_free char *there = NULL;
		struct err ignored;

		/* A development server that sees its config written anew starts anew. */
		if (read_copy(pipeline, "", path, &there, &ignored) == 0 && there &&
			strcmp(there, json_string_value(text)) == 0)
			continue;
		r = pipeline_write(pipeline, path, json_string_value(text), err);
		if (r < 0)
			break;
		pipeline_log(pipeline, "fixed in the copy: %s", path);
	}
	return r;
}

int stage_materialize(struct pipeline *pipeline, struct err *err)
{
	int r = 0;

	for (int role = 0; role < ROLE_COUNT && r == 0; role++)
		r = pipeline->detection.has_part[role] ? read_env(pipeline, role, err) : 0;
	if (r == 0 && pipeline->record.project[0])
		r = copy_project(pipeline, err);
	if (r == 0)
		r = apply_fixes(pipeline, err);
	return r == 0 && !pipeline->record.project[0] ? PIPELINE_SKIPPED : r;
}

/* --- GenerateEnvVars --- */

static void tell_env(void *arg, const char *line)
{
	pipeline_log(arg, "%s", line);
}

static void set_number(json_t *env, const char *name, unsigned number)
{
	char text[12];

	snprintf(text, sizeof(text), "%u", number);
	json_object_set_new(env, name, json_string(text));
}

/* What the parts are told; later ones win: what is usual, then what the request says. */
static json_t *make_env(struct pipeline *pipeline, enum app_role role)
{
	const struct detection *detection = &pipeline->detection;
	json_t *env = json_object(), *given = json_object_get(pipeline->input, "env");
	char origin[LAUNCHES_ORIGIN_MAX];

	set_number(env, "PORT", detection->parts[role].port);
	json_object_set_new(env, "HOST", json_string("127.0.0.1"));
	if (detection->has_part[ROLE_BACKEND])
		set_number(env, "BACKEND_PORT", detection->parts[ROLE_BACKEND].port);
	pipeline->config->origin(pipeline->config->arg, sandbox_id(pipeline->sandbox),
		detection_primary(detection)->port, origin);
	json_object_set_new(env, "CORS_ORIGINS", json_string(origin));
	/* A page beside a backend has no use for its passwords. */
	if (role == ROLE_BACKEND || !detection->has_part[ROLE_BACKEND])
		services_add_env(pipeline, env);
	json_object_update(env, given);
	return env;
}

/* What is known of the .env of a part. */
static struct env_file env_file_of(struct pipeline *pipeline, enum app_role role)
{
	const struct pipeline_env_file *texts = &pipeline->env_files[role];

	return (struct env_file){.project = texts->project ? texts->project : "",
		.copy = texts->copy ? texts->copy : "",
		.made = texts->made,
		.given = json_object_get(pipeline->input, "env"),
		.told = tell_env,
		.arg = pipeline};
}

/* Apps whose command does not say it listen where PORT says, and .env or the request may say that. */
static void take_port(struct pipeline *pipeline, enum app_role role)
{
	struct app_part *part = &pipeline->detection.parts[role];
	const json_t *given = json_object_get(json_object_get(pipeline->input, "env"), "PORT");
	auto_free char *own = env_file_value(pipeline->env_files[role].own, "PORT");
	const char *text = own ? own : json_string_value(given);
	unsigned long port = text ? strtoul(text, NULL, 10) : 0;

	if (!part->is_port_told && !part->has_own_port && port > 0 && port < 65536)
		part->port = (uint16_t)port;
}

/* Both files come together: if one were newer, what the launch wrote would look as if its owner had. */
static int write_both(struct pipeline *pipeline, const struct app_part *part, const char *text,
	const char *made, struct err *err)
{
	auto_free char *made_path = file_set_join(part->dir, ENV_MADE);
	auto_free char *new_path = mem_printf("%s.new", made_path);
	const struct text_pair env[] = {{"MADE", made_path}};
	auto_free char *cwd = file_set_join(PIPELINE_APP, part->dir);
	struct sandbox_command command = {.line = "cat > .env && mv \"" PIPELINE_APP
						  "/$MADE.new\" \"" PIPELINE_APP "/$MADE\"",
		.cwd = part->dir[0] ? cwd : PIPELINE_APP,
		.env = {.pairs = env, .count = 1},
		.input = text,
		.timeout_ms = LIST_MS};
	struct sandbox_command_end end;
	int r = pipeline_write(pipeline, new_path, made, err);

	if (r == 0)
		r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);
	if (r == 0 && end.exit_code != 0)
		return pipeline_fail_by_output(pipeline, end.tail);
	return r;
}

static bool is_text(const char *text, const char *other)
{
	return text && strcmp(text, other) == 0;
}

static int write_env(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	const struct pipeline_env_file *texts = &pipeline->env_files[role];
	struct env_file file = env_file_of(pipeline, role);
	auto_free char *text = NULL, *made = NULL;

	pipeline->env[role] = make_env(pipeline, role);
	made = env_file_made(&file, texts->own, pipeline->env[role]);
	text = env_file_join(&file, texts->own, pipeline->env[role]);
	if (!has_env_file(pipeline, role) ||
		(is_text(texts->copy, text) && is_text(texts->made, made)))
		return 0;
	if (strlen(text) > FILE_SET_TEXT_MAX)
		return pipeline_fail(
			pipeline, "env_too_large", "take something out of it", ".env is too large");
	env_file_tell_changes(&file, text);
	return write_both(pipeline, part, text, made, err);
}

/* Where the preview is: at the root of a name, or below a path of which its server may have to know. */
static int choose_base(struct pipeline *pipeline, struct err *err)
{
	const struct app_part *primary = detection_primary(&pipeline->detection);
	const char *preview = json_string_value(json_object_get(pipeline->input, "preview"));
	struct sandbox_port_change change = {.number = primary->port};
	struct sandbox_port port, first;
	struct sandbox_record record;
	bool is_first;
	int r;

	snprintf(pipeline->base, sizeof(pipeline->base), "/");
	if (!preview || strcmp(preview, "path") != 0)
		return 0;
	r = sandbox_request_change_port(pipeline->sandbox, &change, &port, err);
	if (r < 0)
		return r;
	sandbox_read(pipeline->sandbox, &record);
	is_first = sandbox_port_find(&record, 0, &first) && first.number == port.number;
	sandbox_record_fini(&record);
	/* A sandbox's first port needs no number in the path. */
	if (is_first)
		snprintf(pipeline->base, sizeof(pipeline->base),
			"/api/sandbox/sessions/%s/preview/", sandbox_id(pipeline->sandbox));
	else
		snprintf(pipeline->base, sizeof(pipeline->base), "/v1/sandboxes/%s/preview/%u/",
			sandbox_id(pipeline->sandbox), port.number);
	json_object_set_new(pipeline->record.document, "preview_path", json_string(pipeline->base));
	pipeline_log(pipeline, "the preview is at %s", pipeline->base);
	if (!port.is_public)
		pipeline_log(pipeline,
			"port %u is private: a browser shows pages by path only of public ports",
			port.number);
	return 0;
}

int stage_generate_env(struct pipeline *pipeline, struct err *err)
{
	int r;

	for (int role = 0; role < ROLE_COUNT; role++) {
		struct env_file file = env_file_of(pipeline, role);

		pipeline->env_files[role].own = env_file_own(&file);
	}
	r = services_make(pipeline, err);
	for (int role = 0; role < ROLE_COUNT; role++) {
		if (pipeline->detection.has_part[role])
			take_port(pipeline, role);
	}
	if (r == 0)
		r = choose_base(pipeline, err);
	for (int role = 0; role < ROLE_COUNT && r == 0; role++) {
		if (pipeline->detection.has_part[role])
			r = write_env(pipeline, role, err);
	}
	return r;
}
