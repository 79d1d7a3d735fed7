/* SPDX-License-Identifier: Apache-2.0 */
#include "api/function/function_body.h"

#include "api/env_body.h"
#include "api/execution/execution_body.h"
#include "api/handlers.h"
#include "core/execution/language.h"
#include "core/process/command.h"

#define CONCURRENCY_MAX 1000
#define IMPORTS_MAX	64
#define IMPORT_MAX	128

struct body {
	const char *language, *code, *handler, *template_name;
	const json_t *imports, *env;
	int64_t timeout_ms, concurrency;
	struct sandbox_resources_body resources;
	struct sandbox_network_body network;
	struct dependency_body dependencies;
};

/* Names of modules: os.path, node:fs, @scope/package. */
static const char *check_imports(const json_t *list)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		const char *text = json_string_value(entry);

		if (!text[0] || strlen(text) > IMPORT_MAX || text[0] == '-' || text[0] == '.' ||
			text[0] == '/' ||
			strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.:@/-") != strlen(text))
			return "has an entry that is no name of a module";
	}
	return NULL;
}

#define AT(member) offsetof(struct body, member)

static const struct field rows[] = {
	{"language", FIELD_STRING, AT(language), 1, EXECUTION_LANGUAGE_MAX, FIELD_REQUIRED,
		"What the code is written in.", .choices = language_names},
	{"code", FIELD_STRING, AT(code), 1, EXECUTION_CODE_MAX / 2, FIELD_REQUIRED,
		"The code, which defines the handler."},
	{"handler", FIELD_STRING, AT(handler), 1, EXECUTION_HANDLER_MAX - 1, 0,
		"The function to call; `handler` if left out.",
		.check = execution_body_check_handler},
	{"imports", FIELD_STRING_LIST, AT(imports), 0, IMPORTS_MAX, 0,
		"Modules that waiting interpreters of this function have loaded before a call "
		"comes.",
		.check = check_imports},
	{"env", FIELD_STRING_MAP, AT(env), 0, SPEC_ENV_MAX, 0, "Its environment.",
		.check = env_body_check},
	{"timeout_ms", FIELD_INTEGER, AT(timeout_ms), 1, COMMAND_TIMEOUT_MAX_MS, 0,
		"Ends a call after so long; 300000 if left out."},
	{"concurrency", FIELD_INTEGER, AT(concurrency), 1, CONCURRENCY_MAX, 0,
		"How many calls may be under way at once; further ones are answered with 429. No "
		"limit if left out, but that of your quota."},
	{"template", FIELD_STRING, AT(template_name), 1, SANDBOX_TEMPLATE_MAX - 1, 0,
		"What the sandbox of a call starts from: the name of a template, or an image."},
	{"resources", FIELD_OBJECT, AT(resources), 0, 0, 0, "Limits of the sandbox of a call.",
		.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},
	{"network", FIELD_OBJECT, AT(network), 0, 0, 0, "Egress policy of the sandbox of a call.",
		.sub = sandbox_network_rows, .sub_count = SANDBOX_NETWORK_ROWS},
	{"dependencies", FIELD_OBJECT, AT(dependencies), 0, 0, 0,
		"Packages that the sandbox of a call has beside its template.",
		.sub = dependency_body_rows, .sub_count = DEPENDENCY_BODY_ROWS},
};

const struct fields functions_fields = FIELDS(rows);

int function_body_decode(const json_t *object, json_t **ret_spec, struct err *err)
{
	struct sandbox_body *sandbox = mem_new(sizeof(*sandbox));
	struct body body = {0};
	int r;

	fields_clear(&functions_fields, &body);
	r = fields_decode(&functions_fields, object, &body, err);
	if (r == 0)
		r = execution_body_decode_sandbox(object, sandbox, err);
	free(sandbox);
	if (r == 0)
		*ret_spec = json_deep_copy(object);
	return r;
}

json_t *function_body_encode(
	const struct api *api, const struct function_record *record, bool has_code)
{
	json_t *answer = json_deep_copy(record->spec);

	json_object_set_new(answer, "name", json_string(record->name));
	json_object_set_new(answer, "version", json_integer(record->version));
	json_object_set_new(
		answer, "created_at", api_stored_time_to_json(api, record->created_at_ms));
	if (!has_code)
		json_object_del(answer, "code");
	return answer;
}

json_t *function_body_call(const struct function_record *record, json_t *event)
{
	json_t *call = json_copy(record->spec);

	json_object_del(call, "imports");
	json_object_del(call, "concurrency");
	if (!json_object_get(call, "handler"))
		json_object_set_new(call, "handler", json_string("handler"));
	/* Which is what a handler is called with without one. */
	if (json_is_null(event))
		json_decref(event);
	else
		json_object_set_new(call, "event", event);
	return call;
}

unsigned function_body_concurrency(const struct function_record *record)
{
	return (unsigned)json_integer_value(json_object_get(record->spec, "concurrency"));
}
