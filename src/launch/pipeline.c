/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/pipeline.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/engine/sandbox_network.h"
#include "launch/launch_trace.h"
#include "launch/launches.h"
#include "launch/stage/package_layer.h"
#include "launch/stage/part_versions.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 20
#define WRITE_MS  20000

const struct pipeline_stage pipeline_stages[] = {
	{"DetectEntryPoint", stage_detect, true},
	{"MaterializeFiles", stage_materialize, true},
	{"GenerateEnvVars", stage_generate_env, true},
	{"InstallDependencies", stage_install, false},
	{"PostInstallChecks", stage_check_install, false},
	{"SyntaxCheck", stage_check_syntax, false},
	{"LaunchBackend", stage_launch_backend, false},
	{"LaunchFrontend", stage_launch_frontend, false},
};
const size_t pipeline_stage_count = array_len(pipeline_stages);
_Static_assert(array_len(pipeline_stages) <= PIPELINE_STAGES_MAX, "each has its times");

bool pipeline_has_stage(const char *name)
{
	for (size_t i = 0; i < pipeline_stage_count; i++) {
		if (strcmp(pipeline_stages[i].name, name) == 0)
			return true;
	}
	return false;
}

/* --- what is told --- */

/* Puts a line into the log; takes over the event. */
static void tell(struct pipeline *pipeline, json_t *event)
{
	auto_free char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	if (text)
		job_log(pipeline->job, "%s", text);
	json_decref(event);
}

static void tell_line(void *arg, const char *line)
{
	struct pipeline *pipeline = arg;

	tell(pipeline, json_pack("{s:s, s:s, s:s}", "stage", pipeline->stage, "status", "running",
			       "log", line));
}

void pipeline_log(struct pipeline *pipeline, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	failure_cause_clean(line);
	tell_line(pipeline, line);
}

int pipeline_fail(
	struct pipeline *pipeline, const char *code, const char *remedy, const char *format, ...)
{
	struct failure_cause *cause = &pipeline->cause;
	va_list args;

	*cause = (struct failure_cause){0};
	snprintf(cause->code, sizeof(cause->code), "%s", code);
	snprintf(cause->remedy, sizeof(cause->remedy), "%s", remedy ? remedy : "");
	va_start(args, format);
	vsnprintf(cause->message, sizeof(cause->message), format, args);
	va_end(args);
	failure_cause_clean(cause->message);
	return PIPELINE_FAILED;
}

int pipeline_fail_by_output(struct pipeline *pipeline, const char *output)
{
	failure_cause_find(output, &pipeline->cause);
	pipeline_keep_lines(pipeline, output);
	return PIPELINE_FAILED;
}

void pipeline_keep_lines(struct pipeline *pipeline, const char *output)
{
	const char *end = output + strlen(output), *at = end;
	unsigned lines = 0;

	json_decref(pipeline->lines);
	pipeline->lines = json_array();
	while (at > output && lines <= LINES_MAX)
		lines += *--at == '\n';
	while (at < end) {
		size_t len = strcspn(at, "\n");
		auto_free char *line = mem_printf("%.*s", (int)(len < 500 ? len : 500), at);

		failure_cause_clean(line);
		if (line[0])
			json_array_append_new(pipeline->lines, json_string(line));
		at += len + (at[len] == '\n');
	}
}

/* --- what stages do --- */

int pipeline_command_fed(struct pipeline *pipeline, const char *dir, const char *line,
	const char *input, uint64_t timeout_ms, struct sandbox_command_end *ret_end,
	struct err *err)
{
	auto_free char *cwd = file_set_join(PIPELINE_APP, dir);
	struct sandbox_command command = {.line = line,
		.cwd = dir[0] ? cwd : PIPELINE_APP,
		.input = input,
		.timeout_ms = timeout_ms,
		.told = tell_line,
		.arg = pipeline};

	return sandbox_command_run(pipeline->sandbox, pipeline->job, &command, ret_end, err);
}

int pipeline_command(struct pipeline *pipeline, const char *dir, const char *line,
	uint64_t timeout_ms, struct sandbox_command_end *ret_end, struct err *err)
{
	return pipeline_command_fed(pipeline, dir, line, NULL, timeout_ms, ret_end, err);
}

int pipeline_write(struct pipeline *pipeline, const char *path, const char *text, struct err *err)
{
	const struct text_pair env[] = {{"FILE", path}};
	struct sandbox_command command = {
		.line = "mkdir -p \"$(dirname \"$FILE\")\" && cat > \"$FILE\"",
		.cwd = PIPELINE_APP,
		.env = {.pairs = env, .count = 1},
		.input = text,
		.timeout_ms = WRITE_MS};
	struct sandbox_command_end end;
	int r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);

	if (r == 0 && end.exit_code != 0)
		return pipeline_fail_by_output(pipeline, end.tail);
	return r;
}

uint64_t pipeline_timeout_ms(const struct pipeline *pipeline, enum launch_wait wait)
{
	static const char *const names[LAUNCH_WAITS] = {"install_s", "backend_s", "frontend_s"};
	const json_t *given =
		json_object_get(json_object_get(pipeline->input, "timeouts"), names[wait]);

	return 1000 * (json_is_integer(given) ? (uint64_t)json_integer_value(given)
					      : launches_wait_s(pipeline->launches, wait));
}

/* --- the run --- */

static json_t *stage_entry(struct pipeline *pipeline, size_t i)
{
	return json_array_get(json_object_get(pipeline->record.document, "stages"), i);
}

static json_t *cause_to_json(const struct pipeline *pipeline)
{
	const struct failure_cause *cause = &pipeline->cause;

	return json_pack("{s:s, s:s, s:s, s:s?, s:O?}", "stage", pipeline->stage, "code",
		cause->code, "message", cause->message, "remediation",
		cause->remedy[0] ? cause->remedy : NULL, "lines", pipeline->lines);
}

static void set_stage(struct pipeline *pipeline, size_t i, const char *status, uint64_t began_ms)
{
	json_t *entry = stage_entry(pipeline, i);
	bool is_over = strcmp(status, "running") != 0;
	bool is_failed = strcmp(status, "failed") == 0;
	json_int_t duration_ms = (json_int_t)(clock_steady_ms() - began_ms);

	json_object_set_new(entry, "status", json_string(status));
	if (is_over)
		json_object_set_new(entry, "duration_ms", json_integer(duration_ms));
	if (is_failed)
		json_object_set_new(entry, "error", json_string(pipeline->cause.message));
	tell(pipeline, json_pack("{s:s, s:s, s:o*, s:o*}", "stage", pipeline->stage, "status",
			       status, "duration_ms", is_over ? json_integer(duration_ms) : NULL,
			       "error", is_failed ? cause_to_json(pipeline) : NULL));
	launches_note(pipeline->launches, &pipeline->record);
}

/* Whether a text stands in one of the last lines. */
static bool is_said(const struct pipeline *pipeline, const char *text)
{
	json_t *line;
	size_t i;

	json_array_foreach(pipeline->lines, i, line)
	{
		if (strstr(json_string_value(line), text))
			return true;
	}
	return false;
}

/* Whether the last lines name what was refused. */
static bool is_named(const struct pipeline *pipeline, const char *target)
{
	auto_free char *host = mem_printf("%.*s", (int)strcspn(target, ":"), target);

	return host[0] && is_said(pipeline, host);
}

/* Whether the last lines say that a connection was missed; pip and others do not say to where. */
static bool has_missed_connection(const struct pipeline *pipeline)
{
	static const char *const words[] = {"ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN",
		"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "onnection refused", "onnection reset",
		"onnection aborted", "onnection broken", "ould not resolve", "name resolution",
		"is unreachable", "socket hang up", "fetch failed"};

	for (size_t i = 0; i < array_len(words); i++) {
		if (is_said(pipeline, words[i]))
			return true;
	}
	return false;
}

static bool has_cause(const struct pipeline *pipeline, const char *const *codes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(pipeline->cause.code, codes[i]) == 0)
			return true;
	}
	return false;
}

/*
 * A connection that the policy refused is the cause only if the program that failed says so itself: it names the host,
 * or, where packages are installed, it says that it missed a connection. Programs ask for more than they need: whether
 * there is a newer release of them, where to report their use. Such a refusal is told beside a cause that says little.
 */
static void blame_denial(struct pipeline *pipeline, const struct egress_denial *denial)
{
	static const char *const vague[] = {
		"failed", "exited", "not_ready", "install_failed", "install_timeout"};
	static const char *const of_registry[] = {
		"failed", "install_failed", "install_timeout", "package_not_found"};
	auto_free char *said = NULL;

	if (is_named(pipeline, denial->target) ||
		(strcmp(pipeline->stage, "InstallDependencies") == 0 &&
			has_cause(pipeline, of_registry, array_len(of_registry)) &&
			has_missed_connection(pipeline))) {
		pipeline_fail(pipeline, "network_refused",
			denial->rule[0] ? "add the rule to network.allow of the sandbox"
					: "change the network of the sandbox",
			"the sandbox's network policy refused %s%s%s", denial->target,
			denial->rule[0] ? "; the rule that would allow it: " : "", denial->rule);
	} else if (has_cause(pipeline, vague, array_len(vague))) {
		said = mem_printf("%s; meanwhile the network policy refused %s%s%s",
			pipeline->cause.message, denial->target,
			denial->rule[0] ? ", which the rule would allow: " : "", denial->rule);
		snprintf(pipeline->cause.message, sizeof(pipeline->cause.message), "%s", said);
	}
}

/* Of all that was refused since then, what is named counts before the rest. */
static void blame_network(struct pipeline *pipeline, int64_t since_ms)
{
	struct sandbox_network_report report;
	const struct egress_denial *denial = NULL;

	sandbox_network_read(pipeline->sandbox, &report);
	for (size_t i = 0; i < report.denial_count && report.denials[i].at_ms >= since_ms; i++) {
		if (!denial || (!is_named(pipeline, denial->target) &&
				       is_named(pipeline, report.denials[i].target)))
			denial = &report.denials[i];
	}
	if (denial)
		blame_denial(pipeline, denial);
	sandbox_network_report_fini(&report);
}

static int run_stage(struct pipeline *pipeline, size_t i, struct err *err)
{
	uint64_t began_ms = clock_steady_ms();
	int64_t wall_ms = clock_wall_ms();
	int r;

	pipeline->stage = pipeline_stages[i].name;
	pipeline->times[i].begun_us = launch_trace_now_us(pipeline);
	set_stage(pipeline, i, "running", began_ms);
	r = job_must_stop(pipeline->job) ? -ECANCELED : pipeline_stages[i].run(pipeline, err);
	pipeline->times[i].ended_us = launch_trace_now_us(pipeline);
	if (r == -ECANCELED) {
		set_stage(pipeline, i, "skipped", began_ms);
		return r;
	}
	if (r < 0 && r != PIPELINE_FAILED)
		pipeline_fail(pipeline, err->code, err->remedy, "%s", err->message);
	if (r < 0)
		blame_network(pipeline, wall_ms);
	set_stage(pipeline, i,
		r < 0			? "failed"
		: r == PIPELINE_SKIPPED ? "skipped"
					: "complete",
		began_ms);
	return r < 0 ? PIPELINE_FAILED : 0;
}

/* The first stage that a retry runs. */
static size_t first_stage(const struct pipeline *pipeline)
{
	const char *from = json_string_value(json_object_get(pipeline->input, "from"));

	for (size_t i = 0; from && i < pipeline_stage_count; i++) {
		if (strcmp(pipeline_stages[i].name, from) == 0)
			return i;
	}
	return 0;
}

int pipeline_run(struct pipeline *pipeline, struct err *err)
{
	size_t first = first_stage(pipeline);
	int r = 0;

	pipeline->is_forced = json_is_string(json_object_get(pipeline->input, "from"));
	part_versions_begin(pipeline);
	for (size_t i = 0; i < pipeline_stage_count && r == 0; i++) {
		if (i >= first || pipeline_stages[i].is_always) {
			r = run_stage(pipeline, i, err);
			continue;
		}
		pipeline->stage = pipeline_stages[i].name;
		set_stage(pipeline, i, "skipped", clock_steady_ms());
	}
	if (r == 0 || r == PIPELINE_FAILED)
		package_layer_share(pipeline);
	if (r == 0) {
		part_versions_note(
			pipeline); /* a retry may have begun behind the stage that does */
		pipeline->record.status = LAUNCH_SUCCEEDED;
		return 0;
	}
	if (r != PIPELINE_FAILED)
		return r;
	pipeline->record.status = LAUNCH_FAILED;
	snprintf(pipeline->record.failed_stage, sizeof(pipeline->record.failed_stage), "%s",
		pipeline->stage);
	snprintf(
		pipeline->record.cause, sizeof(pipeline->record.cause), "%s", pipeline->cause.code);
	json_object_set_new(pipeline->record.document, "error", cause_to_json(pipeline));
	return err_explain(err, ERR_UNPROCESSABLE, pipeline->cause.code,
		pipeline->cause.remedy[0] ? pipeline->cause.remedy : NULL, "%s: %s",
		pipeline->stage, pipeline->cause.message);
}

void pipeline_fini(struct pipeline *pipeline)
{
	file_set_fini(&pipeline->files);
	detection_fini(&pipeline->detection);
	validation_fini(&pipeline->validation);
	launch_record_fini(&pipeline->record);
	json_decref(pipeline->lines);
	for (int role = 0; role < ROLE_COUNT; role++) {
		struct pipeline_env_file *file = &pipeline->env_files[role];

		json_decref(pipeline->env[role]);
		free(file->project);
		free(file->copy);
		free(file->made);
		free(file->own);
	}
}
