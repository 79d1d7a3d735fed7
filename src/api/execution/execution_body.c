/* SPDX-License-Identifier: Apache-2.0 */
#include "api/execution/execution_body.h"

#include "api/env_body.h"
#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/sandbox/dependency_body.h"
#include "api/text.h"
#include "core/execution/language.h"
#include "core/process/command.h"

#define INPUT_MAX (1 << 20)

struct body {
	const char *language, *context, *code, *path, *handler, *cwd, *input, *on_disconnect,
		*confirm;
	const json_t *event, *env, *files, *files_base64;
	int64_t timeout_ms;
	enum field_boolean is_async;
	/* of one without a sandbox; decoded by sandbox_body_decode() */
	const char *template_name;
	struct sandbox_resources_body resources;
	struct sandbox_network_body network;
	struct dependency_body dependencies;
};

const char *execution_body_check_handler(const json_t *handler)
{
	const char *text = json_string_value(handler);

	for (; *text; text++) {
		bool is_fit = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
			      (*text >= '0' && *text <= '9') || strchr("_$.-/", *text);

		if (!is_fit)
			return "must be the name of a function, or of a file and a function: "
			       "index.handler";
	}
	return NULL;
}

static const char *check_paths(const json_t *files)
{
	const char *path;
	json_t *text;

	json_object_foreach((json_t *)files, path, text)
	{
		size_t len = strlen(path);

		if (len == 0 || len >= AGENT_PATH_MAX || path[len - 1] == '/')
			return "must name files, by paths of up to 4095 bytes";
	}
	return NULL;
}

static const char *check_base64(const json_t *files)
{
	const char *path, *wrong = check_paths(files);
	json_t *text;

	json_object_foreach((json_t *)files, path, text)
	{
		auto_free uint8_t *data = NULL;

		if (!wrong && text_decode_base64(json_string_value(text), &data) < 0)
			wrong = "must have base64, with its padding, under each path";
	}
	return wrong;
}

static const char *const disconnect_choices[] = {"cancel", "keep", NULL};

#define AT(member) offsetof(struct body, member)

/* What all of them have. */
/* clang-format off */
#define COMMON_ROWS \
	{"code", FIELD_STRING, AT(code), 1, EXECUTION_CODE_MAX, 0, \
		"The code. Either this or path."}, \
	{"path", FIELD_STRING, AT(path), 1, AGENT_PATH_MAX - 1, 0, \
		"A file in the sandbox with the code."}, \
	{"handler", FIELD_STRING, AT(handler), 1, EXECUTION_HANDLER_MAX - 1, 0, \
		"The function to call. If left out, `handler` is called if the code defines it, " \
		"and else the code is a script.", \
		.check = execution_body_check_handler}, \
	{"event", FIELD_JSON, AT(event), 0, 0, 0, \
		"What the handler is called with: any JSON. null if left out."}, \
	{"cwd", FIELD_STRING, AT(cwd), 1, AGENT_PATH_MAX - 1, 0, \
		"Working directory; /workspace if left out.", .check = command_body_check_cwd}, \
	{"env", FIELD_STRING_MAP, AT(env), 0, SPEC_ENV_MAX, 0, \
		"Environment, on top of the sandbox's.", .check = env_body_check}, \
	{"files", FIELD_STRING_MAP, AT(files), 0, EXECUTION_FILES_MAX, 0, \
		"Files that are written before the code runs: text by path. A path that is not " \
		"absolute begins in the working directory; directories are made.", \
		.check = check_paths}, \
	{"files_base64", FIELD_STRING_MAP, AT(files_base64), 0, EXECUTION_FILES_MAX, 0, \
		"The same for files that are not text: base64 by path.", .check = check_base64}, \
	{"stdin", FIELD_STRING, AT(input), 0, INPUT_MAX, 0, "Standard input; empty if left out."}, \
	{"timeout_ms", FIELD_INTEGER, AT(timeout_ms), 1, COMMAND_TIMEOUT_MAX_MS, 0, \
		"Ends it with all that it started after so long; 300000 if left out."}, \
	{"async", FIELD_BOOLEAN, AT(is_async), 0, 0, 0, \
		"Answers with 202 as soon as it runs; what comes of it is kept under its id."}, \
	{"confirm", FIELD_STRING, AT(confirm), 1, 64, 0, \
		"The code of a 409 confirmation_required: the code is meant, although it looks " \
		"dangerous."}, \
	{"on_disconnect", FIELD_STRING, AT(on_disconnect), 0, 16, 0, \
		"What becomes of one whose client goes away before the answer: cancel (the " \
		"default) ends it, keep lets it go on.", \
		.choices = disconnect_choices}
/* clang-format on */

static const struct field rows[] = {
	{"language", FIELD_STRING, AT(language), 1, EXECUTION_LANGUAGE_MAX, 0,
		"What the code is written in. With context_id it may be left out.",
		.choices = language_names},
	{"context_id", FIELD_STRING, AT(context), ID_LEN, ID_LEN, 0,
		"The context to run in, after what runs or waits there. If left out, it has a "
		"process of its own."},
	COMMON_ROWS,
};

static const struct field fresh_rows[] = {
	{"language", FIELD_STRING, AT(language), 1, EXECUTION_LANGUAGE_MAX, FIELD_REQUIRED,
		"What the code is written in.", .choices = language_names},
	COMMON_ROWS,
	{"template", FIELD_STRING, AT(template_name), 1, SANDBOX_TEMPLATE_MAX - 1, 0,
		"What its sandbox starts from: the name of a template, or an image."},
	{"resources", FIELD_OBJECT, AT(resources), 0, 0, 0, "Limits of its sandbox.",
		.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},
	{"network", FIELD_OBJECT, AT(network), 0, 0, 0, "Egress policy of its sandbox.",
		.sub = sandbox_network_rows, .sub_count = SANDBOX_NETWORK_ROWS},
	{"dependencies", FIELD_OBJECT, AT(dependencies), 0, 0, 0,
		"Packages that its sandbox has beside its template; they are installed first if "
		"they were not before.",
		.sub = dependency_body_rows, .sub_count = DEPENDENCY_BODY_ROWS},
};

const struct fields executions_fields = FIELDS(rows);
const struct fields executions_fresh_fields = FIELDS(fresh_rows);

/* The part that says what sandbox is wanted. */
static json_t *sandbox_part(const json_t *object)
{
	static const char *const names[] = {"template", "resources", "network", "dependencies"};
	json_t *part = json_object();

	for (size_t i = 0; i < array_len(names); i++) {
		json_t *value = json_object_get(object, names[i]);

		if (value)
			json_object_set(part, names[i], value);
	}
	return part;
}

int execution_body_decode_sandbox(
	const json_t *object, struct sandbox_body *ret_body, struct err *err)
{
	json_t *part = sandbox_part(object);
	int r = sandbox_body_decode(part, ret_body, err);

	json_decref(part); /* what it points to is the object's too */
	return r;
}

int execution_body_decode(
	const json_t *object, bool is_fresh, struct execution_body *ret_body, struct err *err)
{
	const struct fields *fields = is_fresh ? &executions_fresh_fields : &executions_fields;
	struct body body = {0};
	int r;

	fields_clear(fields, &body);
	r = fields_decode(fields, object, &body, err);
	if (r < 0)
		return r;
	ret_body->context = body.context;
	ret_body->confirm = body.confirm;
	ret_body->spec = (struct execution_spec){.language = body.language,
		.code = body.code,
		.path = body.path,
		.handler = body.handler,
		.event = body.event,
		.cwd = body.cwd,
		.env = {ret_body->env, fields_copy_map(body.env, ret_body->env)},
		.files = body.files,
		.files_base64 = body.files_base64,
		.input = body.input,
		.input_len = body.input ? strlen(body.input) : 0,
		.timeout_ms = body.timeout_ms > 0 ? (uint64_t)body.timeout_ms : 0,
		.is_fresh = is_fresh,
		.request = (json_t *)object};
	ret_body->is_async = body.is_async == FIELD_TRUE;
	ret_body->is_kept = body.on_disconnect && strcmp(body.on_disconnect, "keep") == 0;
	if (!body.language && !body.context)
		return err_explain(
			err, ERR_INVALID, "invalid_field", NULL, "field language is missing");
	if (ret_body->is_async && body.on_disconnect)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field on_disconnect is for one whose client waits: this one is async");
	return 0;
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

json_t *execution_body_encode(const struct api *api, const struct execution_record *record)
{
	char process[PROCESS_NAME_MAX];
	json_t *answer;

	process_name_format(record->process, process);
	answer = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:b, s:I, s:o, s:o}",
		"id", record->id, "status", execution_status_name(record->status), "sandbox_id",
		record->is_fresh ? json_null() : json_string(record->sandbox_id), "context_id",
		text_or_null(record->context_id), "function", text_or_null(record->function),
		"version", record->version ? json_integer(record->version) : json_null(),
		"language", record->language, "handler", text_or_null(record->handler), "process",
		record->is_fresh || !record->process ? json_null() : json_string(process),
		"cancelling", record->is_cancelling && record->status == EXECUTION_RUNNING,
		"timeout_ms", (json_int_t)record->timeout_ms, "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "ended_at",
		api_stored_time_to_json(api, record->ended_at_ms));
	json_object_set_new(answer, "flags", danger_to_json(record->danger));
	if (record->outcome)
		json_object_update(answer, record->outcome);
	return answer;
}
