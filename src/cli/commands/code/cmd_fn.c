/* SPDX-License-Identifier: Apache-2.0 */
/* fn: functions, which are code that is kept under a name and called by it. */
#include "base/mem.h"
#include "cli/code_file.h"
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define FUNCTIONS "/v1/functions"

struct fn_values {
	const char *language, *handler, *template_name, *memory, *event, *version;
	struct option_number timeout, concurrency, count;
	struct option_list env, imports;
	bool detach;
};

#define AT(member) offsetof(struct fn_values, member)

static const struct option options[] = {
	{OPTION_NUMBER, 0, "concurrency", "N", "deploy: how many calls may be under way",
		AT(concurrency)},
	{OPTION_FLAG, 'd', "detach", NULL, "invoke: print the id of the execution and leave",
		AT(detach)},
	{OPTION_LIST, 'e', "env", "K=V", "deploy: set an environment variable; may be repeated",
		AT(env)},
	{OPTION_TEXT, 0, "event", "JSON", "invoke: what it is called with; @FILE: what is in it",
		AT(event)},
	{OPTION_TEXT, 0, "handler", "NAME", "deploy: the function to call; `handler`", AT(handler)},
	{OPTION_LIST, 0, "import", "MODULE", "deploy: loaded before a call comes; may be repeated",
		AT(imports)},
	{OPTION_CHOICE, 'l', "language", "NAME", "deploy: what it is written in", AT(language),
		.choices = "python javascript typescript java shell"},
	{OPTION_TEXT, 'm', "memory", "SIZE", "deploy: memory of a call, such as 128Mi", AT(memory)},
	{OPTION_NUMBER, 'n', "number", "N", "logs: how many calls, the newest; 10", AT(count)},
	{OPTION_TEXT, 't', "template", "NAME", "deploy: what its sandboxes start from",
		AT(template_name)},
	{OPTION_SECONDS, 'T', "timeout", "TIME", "deploy: end a call after so long: 10s, 500ms",
		AT(timeout)},
	{OPTION_TEXT, 0, "at", "VERSION", "invoke: this version; the last", AT(version)},
	{OPTION_END},
};

static int path_of(const char *name, const char *rest, char **ret_path, struct err *err)
{
	if (!name[0] || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789._-")])
		return err_set(err, ERR_INVALID, "%.64s is no name of a function", name);
	*ret_path = mem_printf(FUNCTIONS "/%s%s", name, rest);
	return 0;
}

/* One request about a function. */
static int ask(
	struct cli *cli, const struct client_call *call, json_t **ret_answer, struct err *err)
{
	struct client *client;
	int r = cli_connect(cli, &client, err);

	return r < 0 ? r : client_json(client, call, ret_answer, err);
}

/* --- deploy --- */

static void set_text(json_t *body, const char *name, const char *text)
{
	if (text)
		json_object_set_new(body, name, json_string(text));
}

static void set_number(json_t *body, const char *name, const struct option_number *number)
{
	if (number->is_set)
		json_object_set_new(body, name, json_integer((json_int_t)number->value));
}

static int make_body(const struct fn_values *v, const char *file, json_t *body, struct err *err)
{
	const char *language = v->language ? v->language : code_file_language(file);
	auto_(buf_fini) struct buf code = BUF_INIT(CODE_FILE_MAX);
	json_t *pairs, *imports = json_array();
	int r = language ? code_file_read(file, &code, err)
			 : err_explain(err, ERR_INVALID, NULL, "say it with -l python",
				   "the name %s does not tell its language", file);

	for (size_t i = 0; i < v->imports.count; i++)
		json_array_append_new(imports, json_string(v->imports.items[i]));
	if (v->imports.count > 0)
		json_object_set(body, "imports", imports);
	json_decref(imports);
	if (r < 0)
		return r;
	set_text(body, "language", language);
	if (code.len == 0 || json_object_set_new(body, "code",
				     json_stringn((const char *)code.data, code.len)) < 0)
		return err_set(err, ERR_INVALID, "%s is empty, or not UTF-8 text", file);
	set_text(body, "handler", v->handler);
	set_text(body, "template", v->template_name);
	if (v->memory)
		json_object_set_new(body, "resources", json_pack("{s:s}", "memory", v->memory));
	set_number(body, "timeout_ms", &v->timeout);
	set_number(body, "concurrency", &v->concurrency);
	if (v->env.count > 0) {
		r = create_spec_pairs(&v->env, "--env", &pairs, err);
		if (r == 0)
			json_object_set_new(body, "env", pairs);
	}
	return r;
}

static int deploy(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct fn_values *v = call->values;
	const char *name = call->argv[0], *file = call->argv[1];
	json_auto_t *body = json_object(), *answer = NULL;
	auto_free char *path = NULL;
	int r = path_of(name, "", &path, err);

	if (r == 0)
		r = make_body(v, file, body, err);
	if (r == 0)
		r = ask(cli, &(struct client_call){.method = "PUT", .path = path, .body = body},
			&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_note("%s is version %lld", name,
			(long long)json_integer_value(json_object_get(answer, "version")));
	return 0;
}

/* --- invoke --- */

static int invoke(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct fn_values *v = call->values;
	const char *name = call->argv[0];
	json_auto_t *event = json_object(), *answer = NULL;
	auto_free char *path = NULL, *query = NULL, *text = NULL;
	int r = v->event ? code_file_add_event(event, v->event, err) : 0;

	if (r == 0 && v->version && v->version[strspn(v->version, "0123456789")])
		r = err_set(err, ERR_INVALID, "--at must be a number");
	if (r < 0)
		return r;
	query = mem_printf("/invoke?async=%s%s%s", v->detach ? "true" : "false",
		v->version ? "&version=" : "", v->version ? v->version : "");
	r = path_of(name, query, &path, err);
	if (r == 0)
		r = ask(cli,
			&(struct client_call){.method = "POST",
				.path = path,
				.body = v->event ? json_object_get(event, "event") : event},
			&answer, err);
	if (r < 0)
		return r;
	if (v->detach && !cli_wants_json(cli)) {
		cli_print("%s\n", cli_text(answer, "id"));
		return 0;
	}
	text = cli_dump_json(answer ? answer : json_null(), JSON_INDENT(2) | JSON_ENCODE_ANY);
	cli_print("%s\n", text);
	return 0;
}

/* --- ls --- */

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	static const char *const heading[] = {"NAME", "VERSION", "LANGUAGE", "DEPLOYED"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	json_auto_t *document = NULL;
	const json_t *function;
	size_t i;
	int r = ask(cli, &(struct client_call){.method = "GET", .path = FUNCTIONS}, &document, err);

	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(document);
		return 0;
	}
	table_add_row(&table, heading);
	json_array_foreach(json_object_get(document, "functions"), i, function)
	{
		table_add(&table, "%s", cli_text(function, "name"));
		table_add(&table, "%lld",
			(long long)json_integer_value(json_object_get(function, "version")));
		table_add(&table, "%s", cli_text(function, "language"));
		table_add(&table, "%s", cli_text(function, "created_at"));
	}
	table_print(&table, stdout);
	return 0;
}

/* --- logs --- */

static void print_call(const json_t *execution)
{
	const json_t *error = json_object_get(execution, "error");

	cli_print("%s  %s  version %lld  %s\n", cli_text(execution, "created_at"),
		cli_text(execution, "id"),
		(long long)json_integer_value(json_object_get(execution, "version")),
		cli_text(execution, "status"));
	cli_print("%s%s", cli_text(execution, "stdout"), cli_text(execution, "stderr"));
	if (json_is_object(error))
		cli_print("%s\n", cli_text(error, "traceback")[0] ? cli_text(error, "traceback")
								  : cli_text(error, "message"));
}

static int print_one(struct client *client, const char *id, struct err *err)
{
	auto_free char *path = mem_printf("/v1/executions/%s", id);
	json_auto_t *execution = NULL;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &execution, err);

	if (r == 0)
		print_call(execution);
	return r;
}

/* The oldest first, as logs are read. */
static int logs(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct fn_values *v = call->values;
	const char *name = call->argv[0];
	json_auto_t *document = NULL;
	auto_free char *checked = NULL, *path = NULL;
	const json_t *executions;
	struct client *client;
	int r = path_of(name, "", &checked, err);

	path = mem_printf("/v1/executions?function=%s&limit=%llu", name,
		(unsigned long long)(v->count.is_set ? v->count.value : 10));
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = path},
			&document, err);
	if (r < 0)
		return r;
	executions = json_object_get(document, "executions");
	if (cli_wants_json(cli))
		cli_print_json(executions);
	for (size_t i = json_array_size(executions); i > 0 && r == 0 && !cli_wants_json(cli); i--)
		r = print_one(client, cli_text(json_array_get(executions, i - 1), "id"), err);
	return r;
}

/* --- rm --- */

static int remove_all(const struct command_call *call, struct err *err)
{
	struct client *client;
	int code = 0, r = cli_connect(call->cli, &client, err);

	if (r < 0)
		return r;
	for (int i = 0; i < call->argc; i++) {
		auto_free char *path = NULL;

		r = path_of(call->argv[i], "", &path, err);
		if (r == 0)
			r = client_json(client,
				&(struct client_call){.method = "DELETE", .path = path}, NULL, err);
		if (r < 0) {
			cli_complain(err, call->argv[i]);
			code = cli_exit_code(err);
		} else {
			puts(call->argv[i]);
		}
	}
	return code;
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"deploy", "NAME FILE", 2, 2, deploy},
	{"invoke", "NAME", 1, 1, invoke},
	{"ls", "", 0, 0, list},
	{"logs", "NAME", 1, 1, logs},
	{"rm", "NAME...", 1, COMMAND_ANY, remove_all},
	{0},
};

const struct command cmd_fn = {
	.name = "fn",
	.operands = "deploy|invoke|ls|logs|rm [NAME] [FILE]",
	.summary = "keep code under a name, and call it",
	.details =
		"A function is code that defines handler(event, context). deploy makes a new\n"
		"version of it; invoke calls it with --event in a fresh sandbox and prints what\n"
		"it returns; logs shows its last calls with their output.\n\n"
		"  sandlot fn deploy hello hello.py --memory 128Mi -T 10s\n"
		"  sandlot fn invoke hello --event '{\"name\": \"Ada\"}'\n"
		"  sandlot fn logs hello\n"
		"  sandlot fn rm hello\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct fn_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_FILES,
	.verbs = verbs,
};
