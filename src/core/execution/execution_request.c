/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/execution_request.h"

#include "core/execution/outcome.h"
#include "core/process/process_state.h"

#include <errno.h>
#include <string.h>

#define HEAD_LEN  10 /* digits of the length before a request */
#define INPUT_MAX (PROCESS_INPUT_MAX + PROCESS_RUNNER_MAX)

static int bad(struct err *err, const char *remedy, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_field", remedy, "%s", what);
}

/* A plain language gets them as arguments. */
static int check_files(const json_t *files, struct err *err)
{
	const char *path;
	json_t *text;

	json_object_foreach((json_t *)files, path, text)
	{
		if (json_string_length(text) > EXECUTION_ARGUMENT_MAX)
			return bad(err, "write it with PUT /v1/sandboxes/{id}/files before",
				"a file of field files must have less than 128 KiB in this "
				"language");
	}
	return 0;
}

static int check(const struct execution_spec *spec, const struct language *language,
	const char *event, struct err *err)
{
	if (!spec->code == !spec->path)
		return bad(err, NULL, "exactly one of the fields code and path must be given");
	if (spec->path && spec->path[0] != '/')
		return bad(err, NULL, "field path must be an absolute path in the sandbox");
	if (language->is_plain && spec->code && strlen(spec->code) > EXECUTION_ARGUMENT_MAX)
		return bad(err, "write it to a file and give its path",
			"field code must have less than 128 KiB in this language");
	if (language->is_plain && event && strlen(event) > EXECUTION_ARGUMENT_MAX)
		return bad(err, NULL, "field event must have less than 128 KiB in this language");
	if (language->is_plain && spec->event && spec->input)
		return bad(err, NULL,
			"field stdin cannot be given with event, which is the standard input of "
			"this language");
	if (language->is_plain && check_files(spec->files, err) < 0)
		return -EINVAL;
	return language->is_plain ? check_files(spec->files_base64, err) : 0;
}

static uint64_t memory_mb(struct sandbox *sandbox)
{
	struct sandbox_record record;
	uint64_t mb;

	sandbox_read(sandbox, &record);
	mb = record.resources.memory_bytes >> 20;
	sandbox_record_fini(&record);
	return mb;
}

/* Absent members stay absent: the runner tells them from null. */
static json_t *make_document(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record)
{
	json_t *document = json_pack("{s:s, s:I, s:I, s:{s:i, s:i}}", "id", record->id,
		"timeout_ms", (json_int_t)record->timeout_ms, "memory_mb",
		(json_int_t)memory_mb(sandbox), "limits", "result", (int)OUTCOME_RESULT_MAX,
		"display", (int)OUTCOME_DISPLAY_MAX - 4096);

	if (spec->is_fresh)
		json_object_set_new(document, "passing", json_true());
	if (spec->function) {
		json_object_set_new(document, "name", json_string(spec->function));
		json_object_set_new(document, "version", json_sprintf("%u", spec->version));
	}
	if (spec->code)
		json_object_set_new(document, "code", json_string(spec->code));
	if (spec->path)
		json_object_set_new(document, "path", json_string(spec->path));
	if (spec->handler)
		json_object_set_new(document, "handler", json_string(spec->handler));
	if (spec->event)
		json_object_set(document, "event", (json_t *)spec->event);
	if (spec->files)
		json_object_set(document, "files", (json_t *)spec->files);
	if (spec->files_base64)
		json_object_set(document, "files_base64", (json_t *)spec->files_base64);
	/* A process of its own has them from its start. */
	if ((record->context_id[0] || spec->warm) && spec->env.count > 0)
		json_object_set_new(document, "env", text_map_to_json(spec->env));
	return document;
}

/* Begins the standard input of a new interpreter with what its runner reads first. */
static void put_rest(struct buf *input, const struct language *language)
{
	if (language->rest)
		buf_append(input, language->rest, (size_t)(language->rest_end - language->rest));
}

/* Puts the request before what the code reads. */
static int frame_input(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record, struct buf *input, struct err *err)
{
	json_t *document = make_document(sandbox, spec, record);
	auto_free char *text = json_dumps(document, JSON_COMPACT);
	size_t before = input->len;

	json_decref(document);
	buf_printf(input, "%0*zu", HEAD_LEN, strlen(text));
	buf_append(input, text, strlen(text));
	if (spec->input)
		buf_append(input, spec->input, spec->input_len);
	return input->failed || input->len - before > PROCESS_INPUT_MAX
		       ? err_set(err, ERR_TOO_LARGE,
				 "code, event, stdin and files together exceed 1 MiB")
		       : 0;
}

static void add(struct execution_request *request, size_t *count, const char *text)
{
	request->argv[(*count)++] = text;
}

static void add_files(
	struct execution_request *request, size_t *count, const char *kind, const json_t *files)
{
	const char *path;
	json_t *text;

	json_object_foreach((json_t *)files, path, text)
	{
		add(request, count, kind);
		add(request, count, path);
		add(request, count, json_string_value(text));
	}
}

static size_t make_argv(struct execution_request *request, const struct execution_spec *spec,
	const struct language *language)
{
	size_t count = 0;

	for (size_t i = 0; language->program[i]; i++)
		add(request, &count, language->program[i]);
	add(request, &count, language->runner);
	if (language->argument)
		add(request, &count, language->argument);
	if (!language->is_plain)
		return count;
	add(request, &count, "sandlot");
	add(request, &count, spec->code ? spec->code : "");
	add(request, &count, spec->path ? spec->path : "");
	add(request, &count, spec->handler ? spec->handler : "handler");
	add(request, &count, request->event ? request->event : "");
	add_files(request, &count, "text", spec->files);
	add_files(request, &count, "base64", spec->files_base64);
	return count;
}

int execution_request_make(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record, struct execution_request *ret_request,
	struct err *err)
{
	const struct language *language = language_find(spec->language);
	struct command_spec command = {.cwd = spec->cwd,
		.env = spec->env,
		.timeout_ms = record->timeout_ms,
		.is_background = true,
		.keeps_awake = true,
		.keeps_input = CHOICE_NO,
		.danger = spec->danger,
		.has_result = true};
	int r;

	*ret_request = (struct execution_request){.input = BUF_INIT(INPUT_MAX)};
	if (spec->event)
		ret_request->event = json_dumps(spec->event, JSON_COMPACT | JSON_ENCODE_ANY);
	r = check(spec, language, ret_request->event, err);
	if (r == 0 && !spec->warm)
		put_rest(&ret_request->input, language);
	if (r == 0 && !language->is_plain)
		r = frame_input(sandbox, spec, record, &ret_request->input, err);
	if (r < 0)
		return r;
	command.input = language->is_plain
				? (spec->event ? (void *)ret_request->event : spec->input)
				: ret_request->input.data;
	command.input_len = !language->is_plain ? ret_request->input.len
			    : spec->event	? strlen(ret_request->event)
						: spec->input_len;
	ret_request->title = mem_printf("%s (execution %s)", language->name, record->id);
	command.title = ret_request->title;
	command.argv =
		(struct text_list){ret_request->argv, make_argv(ret_request, spec, language)};
	return command_make(sandbox, &command, &ret_request->command, err);
}

int execution_request_wait(struct sandbox *sandbox, const struct language *language,
	const json_t *imports, struct execution_request *ret_request, struct err *err)
{
	struct command_spec command = {.is_background = true,
		.keeps_awake = true,
		.keeps_input = CHOICE_YES,
		.has_result = true};
	size_t count, i;
	json_t *name;

	*ret_request = (struct execution_request){.input = BUF_INIT(INPUT_MAX)};
	put_rest(&ret_request->input, language);
	command.input = ret_request->input.data;
	command.input_len = ret_request->input.len;
	ret_request->title = mem_printf("%s (waits for an execution)", language->name);
	command.title = ret_request->title;
	count = make_argv(ret_request, NULL, language);
	add(ret_request, &count, "warm");
	json_array_foreach((json_t *)imports, i, name)
	{
		if (count < array_len(ret_request->argv))
			add(ret_request, &count, json_string_value(name));
	}
	command.argv = (struct text_list){ret_request->argv, count};
	return command_make(sandbox, &command, &ret_request->command, err);
}

static int check_in_context(const struct execution_spec *spec, struct err *err)
{
	static const char remedy[] = "leave it out, or run it without context_id";

	if (!spec->code == !spec->path)
		return bad(err, NULL, "exactly one of the fields code and path must be given");
	if (spec->path && spec->path[0] != '/')
		return bad(err, NULL, "field path must be an absolute path in the sandbox");
	if (spec->handler || spec->event)
		return bad(err, remedy,
			"fields handler and event cannot be given with context_id: a context runs "
			"code as it stands");
	if (spec->input)
		return bad(err, remedy, "field stdin cannot be given with context_id");
	if (spec->cwd)
		return bad(err, "give it when the context is made, or change it with code",
			"field cwd cannot be given with context_id");
	return 0;
}

int execution_request_frame(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record, struct buf *request, struct err *err)
{
	int r = check_in_context(spec, err);

	return r < 0 ? r : frame_input(sandbox, spec, record, request, err);
}

/* Variables from the row of a context. */
static size_t read_env(json_t *env, struct text_pair pairs[SPEC_ENV_MAX])
{
	const char *name;
	json_t *value;
	size_t count = 0;

	json_object_foreach(env, name, value)
	{
		if (count < SPEC_ENV_MAX)
			pairs[count++] = (struct text_pair){name, json_string_value(value)};
	}
	return count;
}

int execution_request_make_context(struct sandbox *sandbox, const struct context_record *context,
	struct execution_request *ret_request, struct err *err)
{
	const struct language *language = language_find(context->language);
	struct text_pair pairs[SPEC_ENV_MAX] not_cleared;
	struct command_spec command = {.cwd = context->cwd[0] ? context->cwd : NULL,
		.is_background = true,
		.keeps_input = CHOICE_YES,
		.has_result = true};
	json_t *document = json_pack("{s:s, s:b, s:{s:i, s:i}}", "id", context->id, "serve", true,
		"limits", "result", (int)OUTCOME_RESULT_MAX, "display",
		(int)OUTCOME_DISPLAY_MAX - 4096);
	auto_free char *text = json_dumps(document, JSON_COMPACT);

	json_decref(document);
	*ret_request = (struct execution_request){.input = BUF_INIT(INPUT_MAX)};
	put_rest(&ret_request->input, language);
	buf_printf(&ret_request->input, "%0*zu%s", HEAD_LEN, strlen(text), text);
	command.env = (struct text_map){pairs, read_env(context->env, pairs)};
	command.input = ret_request->input.data;
	command.input_len = ret_request->input.len;
	ret_request->title = mem_printf("%s (context %s)", language->name, context->id);
	command.title = ret_request->title;
	command.argv = (struct text_list){
		ret_request->argv, make_argv(ret_request, &(struct execution_spec){0}, language)};
	return command_make(sandbox, &command, &ret_request->command, err);
}

void execution_request_fini(struct execution_request *request)
{
	command_fini(&request->command);
	buf_fini(&request->input);
	free(request->event);
	free(request->title);
}
