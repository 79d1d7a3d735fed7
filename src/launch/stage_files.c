/* SPDX-License-Identifier: Apache-2.0 */
/* The stages that have to do with files: what the app is, its copy, and its variables. */
#include "base/buf.h"
#include "core/sandbox/sandbox_request.h"
#include "core/template/build/build_sandbox.h"
#include "launch/launches.h"
#include "launch/pipeline.h"
#include "launch/project_set.h"
#include "model/sandbox/sandbox_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_MS	 20000
#define LIST_MAX (4u << 20)
#define COPY_MS	 120000
#define BLOCK	 "# Variables of the launch; what is above is kept as it was."

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

/* What is in its directory for the app; files that were installed are not looked at. */
static int list_in_sandbox(struct pipeline *pipeline, struct err *err)
{
	struct buf output = BUF_INIT(LIST_MAX);
	struct sandbox_command command = {.line = "mkdir -p " PIPELINE_APP " && cd " PIPELINE_APP
						  " && find . -name node_modules -prune -o -name "
						  ".git -prune -o -name .venv -prune"
						  " -o -type f -print",
		.cwd = "/",
		.timeout_ms = LIST_MS,
		.output = &output};
	struct sandbox_command_end end;
	int r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);
	auto_free char *text = buf_take_str(&output);
	char *state = NULL;

	if (r == 0 && end.exit_code != 0)
		r = pipeline_fail_by_output(pipeline, end.tail);
	if (r < 0)
		return r;
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		if (strncmp(line, "./", 2) == 0 && !file_set_add(&pipeline->files, line + 2))
			break;
	}
	file_set_sort(&pipeline->files);
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

static const char *first_error(const struct validation *validation)
{
	json_t *finding;
	size_t i;

	json_array_foreach(validation->findings, i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "severity")), "error") == 0)
			return json_string_value(json_object_get(finding, "message"));
	}
	return "";
}

int stage_detect(struct pipeline *pipeline, struct err *err)
{
	const struct app_part *primary;
	int r = pipeline->record.project[0]
			? project_set_open(launches_projects(pipeline->launches),
				  &pipeline->record.owner, pipeline->record.project,
				  &pipeline->files, err)
			: list_in_sandbox(pipeline, err);

	if (r == 0)
		r = detection_make(&pipeline->files, pipeline->input, &pipeline->detection, err);
	if (r < 0)
		return r;
	validation_make(&pipeline->files, &pipeline->detection, &pipeline->validation);
	json_object_set(pipeline->record.document, "detection", pipeline->detection.document);
	json_object_set(pipeline->record.document, "findings", pipeline->validation.findings);
	primary = detection_primary(&pipeline->detection);
	if (pipeline->validation.has_error || !primary)
		return pipeline_fail(pipeline, primary ? "missing_script" : "no_entry_point",
			"add one, or say the command in sandlot.json", "%s",
			first_error(&pipeline->validation));
	use_made_config(pipeline);
	tell_parts(pipeline);
	tell_services(pipeline);
	return 0;
}

/* --- MaterializeFiles --- */

/*
 * Makes the copy what the list on its input says: lines of "<sha256> <path>". Files that an earlier launch copied and
 * that are gone are removed; what the app itself made stays, and so does what did not change.
 */
static const char copy_script[] =
	"set -eu; export LC_ALL=C; state=.sandlot; mkdir -p $state; sort > $state/new;"
	"touch $state/files; cut -d' ' -f2- $state/files | sort > $state/had;"
	"cut -d' ' -f2- $state/new | sort > $state/has;"
	"comm -23 $state/had $state/has | tr '\\n' '\\0' | xargs -0 -r rm -f --;"
	"comm -13 $state/files $state/new | cut -d' ' -f2- > $state/changed;"
	"if [ -s $state/changed ]; then"
	"  tar -C /workspace/project_files -cf - -T $state/changed | tar -xf - --no-same-owner;"
	"  tr '\\n' '\\0' < $state/changed | xargs -0 chmod u+rw --; fi;"
	"mv $state/new $state/files; wc -l < $state/changed; wc -l < $state/files";

static int copy_project(struct pipeline *pipeline, struct err *err)
{
	auto_free char *list = project_set_list(&pipeline->files);
	struct buf output = BUF_INIT(4096);
	struct sandbox_command command = {.line = copy_script,
		.cwd = PIPELINE_APP,
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
		r = pipeline_write(pipeline, path, json_string_value(text), err);
		if (r < 0)
			break;
		pipeline_log(pipeline, "fixed in the copy: %s", path);
	}
	return r;
}

int stage_materialize(struct pipeline *pipeline, struct err *err)
{
	struct sandbox_command make = {
		.line = "mkdir -p " PIPELINE_APP, .cwd = "/", .timeout_ms = LIST_MS};
	struct sandbox_command_end end;
	int r = sandbox_command_run(pipeline->sandbox, pipeline->job, &make, &end, err);

	if (r == 0 && end.exit_code != 0)
		r = pipeline_fail_by_output(pipeline, end.tail);
	if (r == 0 && pipeline->record.project[0])
		r = copy_project(pipeline, err);
	if (r == 0)
		r = apply_fixes(pipeline, err);
	return r == 0 && !pipeline->record.project[0] ? PIPELINE_SKIPPED : r;
}

/* --- GenerateEnvVars --- */

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
	launches_origin(pipeline->launches, sandbox_id(pipeline->sandbox),
		detection_primary(detection)->port, origin);
	json_object_set_new(env, "CORS_ORIGINS", json_string(origin));
	/* A page beside a backend has no use for its passwords. */
	if (role == ROLE_BACKEND || !detection->has_part[ROLE_BACKEND])
		services_add_env(pipeline, env);
	json_object_update(env, given);
	return env;
}

/* The value of a variable in a file of them, in a new text; NULL if it is not there. */
static char *value_in(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, len) == 0 && line[len] == '=')
			return mem_printf(
				"%.*s", (int)strcspn(line + len + 1, "\r\n"), line + len + 1);
	}
	return NULL;
}

char *pipeline_own_value(const char *text, const char *name)
{
	const char *block = strstr(text, BLOCK);
	auto_free char *own =
		mem_printf("%.*s", (int)(block ? block - text : (long)strlen(text)), text);

	return value_in(own, name);
}

/* The user's values stay, in the file and for the processes. */
static char *join_env_file(struct pipeline *pipeline, const char *own, json_t *env)
{
	struct buf made = BUF_INIT(FILE_SET_TEXT_MAX);
	const char *name, *block = strstr(own, BLOCK);
	json_t *value;
	void *next;

	buf_append(&made, own, block ? (size_t)(block - own) : strlen(own));
	if (made.len > 0 && made.data[made.len - 1] != '\n')
		buf_append_str(&made, "\n");
	buf_append_str(&made, BLOCK "\n");
	json_object_foreach_safe(env, next, name, value)
	{
		auto_free char *kept = value_in(own, name);
		const char *at = kept ? strstr(own, name) : NULL;

		if (kept && (!block || at < block)) {
			if (strcmp(kept, json_string_value(value)) != 0)
				pipeline_log(pipeline, "%s of .env is kept", name);
			json_object_set_new(env, name, json_string(kept));
			continue;
		}
		buf_printf(&made, "%s=%s\n", name, json_string_value(value));
	}
	return buf_take_str(&made);
}

/* Apps whose command does not say it listen where PORT says, and .env or the request may say that. */
static void take_port(struct pipeline *pipeline, struct app_part *part)
{
	const json_t *given = json_object_get(json_object_get(pipeline->input, "env"), "PORT");
	auto_free char *own = file_set_read(&pipeline->files, part->dir, ".env");
	const char *block = own ? strstr(own, BLOCK) : NULL;
	auto_free char *kept = own ? value_in(own, "PORT") : NULL;
	const char *text =
		kept && (!block || strstr(own, "PORT=") < block) ? kept : json_string_value(given);
	unsigned long port = text ? strtoul(text, NULL, 10) : 0;

	if (!part->is_port_told && !part->has_own_port && port > 0 && port < 65536)
		part->port = (uint16_t)port;
}

static int write_env(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	auto_free char *own = file_set_read(&pipeline->files, part->dir, ".env");
	auto_free char *path = file_set_join(part->dir, ".env"), *text = NULL;

	pipeline->env[role] = make_env(pipeline, role);
	text = join_env_file(pipeline, own ? own : "", pipeline->env[role]);
	/* A page's files are all served. */
	return part->framework->runtime == RUNTIME_STATIC
		       ? 0
		       : pipeline_write(pipeline, path, text, err);
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
	launches_base(sandbox_id(pipeline->sandbox), port.number, is_first, pipeline->base);
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
	int r = services_make(pipeline, err);

	for (int role = 0; role < ROLE_COUNT; role++) {
		if (pipeline->detection.has_part[role])
			take_port(pipeline, &pipeline->detection.parts[role]);
	}
	if (r == 0)
		r = choose_base(pipeline, err);
	for (int role = 0; role < ROLE_COUNT && r == 0; role++) {
		if (pipeline->detection.has_part[role])
			r = write_env(pipeline, role, err);
	}
	return r;
}
