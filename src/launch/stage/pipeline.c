/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/pipeline.h"

#include "launch/stage/log_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 20
#define WRITE_MS  20000

/* --- what is told --- */

void pipeline_tell(struct pipeline *pipeline, json_t *event)
{
	auto_free char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	if (text)
		job_log(pipeline->job, "%s", text);
	json_decref(event);
}

static void tell_line(void *arg, const char *line)
{
	struct pipeline *pipeline = arg;

	pipeline_tell(pipeline, json_pack("{s:s, s:s, s:s}", "stage", pipeline->stage, "status",
					"running", "log", line));
}

void pipeline_log(struct pipeline *pipeline, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_text_clean(line);
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
	log_text_clean(cause->message);
	return PIPELINE_FAILED;
}

int pipeline_fail_by_output(struct pipeline *pipeline, const char *output)
{
	failure_cause_find(output, &pipeline->cause);
	pipeline_keep_lines(pipeline, output);
	return PIPELINE_FAILED;
}

int pipeline_fail_by_end(
	struct pipeline *pipeline, const struct termination *how, const char *output)
{
	if (!failure_cause_of_limit(how, &pipeline->cause))
		return pipeline_fail_by_output(pipeline, output);
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

		log_text_clean(line);
		if (line[0])
			json_array_append_new(pipeline->lines, json_string(line));
		at += len + (at[len] == '\n');
	}
}

/* --- what stages do --- */

int pipeline_command_fed(struct pipeline *pipeline, const char *dir, const char *line,
	const char *input, struct text_map env, uint64_t timeout_ms,
	struct sandbox_command_end *ret_end, struct err *err)
{
	auto_free char *cwd = file_set_join(PIPELINE_APP, dir);
	struct sandbox_command command = {.line = line,
		.cwd = dir[0] ? cwd : PIPELINE_APP,
		.env = env,
		.input = input,
		.timeout_ms = timeout_ms,
		.told = tell_line,
		.arg = pipeline};

	return sandbox_command_run(pipeline->sandbox, pipeline->job, &command, ret_end, err);
}

int pipeline_command(struct pipeline *pipeline, const char *dir, const char *line,
	uint64_t timeout_ms, struct sandbox_command_end *ret_end, struct err *err)
{
	return pipeline_command_fed(
		pipeline, dir, line, NULL, (struct text_map){0}, timeout_ms, ret_end, err);
}

int pipeline_write(struct pipeline *pipeline, const char *path, const char *text, struct err *err)
{
	const struct text_pair env[] = {{"FILE", path}};
	static const char line[] = "case $FILE in */*) [ -d \"${FILE%/*}\" ] || mkdir -p "
				   "\"${FILE%/*}\" || exit 1;; esac; cat > \"$FILE\"";
	struct sandbox_command command = {.line = line,
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
					      : pipeline->config->waits_s[wait]);
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
