/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-code: a file of code is run for its result. Its output goes where it belongs as it comes, then its result is
 * printed as JSON; what it shows is printed as text, or saved.
 */
#include "base/buf.h"
#include "cli/code_file.h"
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/remote/context_ref.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/output/shown_result.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct run_code_values {
	const char *confirm, *language, *context, *event, *handler, *cwd, *save, *template_name;
	struct option_number timeout;
	struct option_list env, files;
	bool detach, is_meant;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "confirm", "CODE", "confirm code that looks dangerous",
		offsetof(struct run_code_values, confirm)},
	{OPTION_TEXT, 0, "context", "CONTEXT", "run it there, with what is defined there",
		offsetof(struct run_code_values, context)},
	{OPTION_FLAG, 'd', "detach", NULL,
		"leave it running and print its id, for sandlot execution",
		offsetof(struct run_code_values, detach)},
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated",
		offsetof(struct run_code_values, env)},
	{OPTION_TEXT, 0, "event", "JSON", "call the handler with this; @FILE: with what is in it",
		offsetof(struct run_code_values, event)},
	{OPTION_LIST, 'f', "file", "FILE[:PATH]",
		"give it this file of yours, at PATH in the sandbox; may be repeated",
		offsetof(struct run_code_values, files)},
	{OPTION_TEXT, 0, "handler", "NAME", "the function to call; `handler`, if there is one",
		offsetof(struct run_code_values, handler)},
	{OPTION_CHOICE, 'l', "language", "NAME", "what it is written in; its name tells that too",
		offsetof(struct run_code_values, language),
		.choices = "python javascript typescript java shell"},
	{OPTION_TEXT, 0, "save", "DIR", "save images that it shows there",
		offsetof(struct run_code_values, save)},
	{OPTION_TEXT, 't', "template", "NAME", "without ID: what its sandbox starts from",
		offsetof(struct run_code_values, template_name)},
	{OPTION_SECONDS, 'T', "timeout", "TIME", "end it after so long: 10s, 500ms, 5m",
		offsetof(struct run_code_values, timeout)},
	{OPTION_TEXT, 'w', "workdir", "DIR", "run in this directory",
		offsetof(struct run_code_values, cwd)},
	{OPTION_FLAG, 'y', "yes", NULL, "do not ask about code that looks dangerous",
		offsetof(struct run_code_values, is_meant)},
	{OPTION_END},
};

/* --- the request --- */

static int set_text(json_t *body, const char *name, const char *text, struct err *err)
{
	if (text && json_object_set_new(body, name, json_string(text)) < 0)
		return err_set(err, ERR_INVALID, "--%s is not UTF-8 text", name);
	return 0;
}

static int make_body(
	const struct run_code_values *v, const char *file, json_t **ret_body, struct err *err)
{
	const char *language = v->language ? v->language : code_file_language(file);
	auto_(buf_fini) struct buf code = BUF_INIT(CODE_FILE_MAX);
	json_auto_t *body = json_object();
	json_t *pairs;
	int r;

	if (!language && !v->context)
		return err_explain(err, ERR_INVALID, NULL, "say it with -l python",
			"the name %s does not tell its language", file);
	r = code_file_read(file, &code, err);
	if (r < 0)
		return r;
	if (language)
		json_object_set_new(body, "language", json_string(language));
	if (code.len == 0 || json_object_set_new(body, "code",
				     json_stringn((const char *)code.data, code.len)) < 0)
		return err_set(err, ERR_INVALID, "%s is empty, or not UTF-8 text", file);
	if ((r = set_text(body, "handler", v->handler, err)) < 0 ||
		(r = set_text(body, "cwd", v->cwd, err)) < 0 ||
		(r = set_text(body, "confirm", v->confirm, err)) < 0 ||
		(v->event && (r = code_file_add_event(body, v->event, err)) < 0))
		return r;
	if (v->timeout.is_set)
		json_object_set_new(body, "timeout_ms", json_integer((json_int_t)v->timeout.value));
	if (v->env.count > 0) {
		r = create_spec_pairs(&v->env, "--env", &pairs, err);
		if (r < 0)
			return r;
		json_object_set_new(body, "env", pairs);
	}
	for (size_t i = 0; i < v->files.count; i++) {
		r = code_file_add_file(body, v->files.items[i], err);
		if (r < 0)
			return r;
	}
	if (v->detach)
		json_object_set_new(body, "async", json_true());
	*ret_body = json_incref(body);
	return 0;
}

/* --- the end --- */

static int copy(struct client *client, struct output_stream *output, struct err *err)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = client_read(client, chunk, sizeof(chunk), err);
		int r;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_explain(err, ERR_UNAVAILABLE, "connection_lost",
				"it ends with its connection: run it again",
				"the daemon closed the stream before the execution ended");
		r = output_stream_feed(output, chunk, (size_t)n, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static int stream(struct client *client, struct client_call *call, const struct run_code_values *v,
	struct err *err)
{
	auto_(output_stream_fini) struct output_stream output = {0};
	struct shown_result shown = {.save = v->save, .prefix = ""};
	int r;

	call->accept = "text/event-stream";
	r = client_open(client, call, err);
	if (r < 0)
		return r;
	output_stream_init(&output, STDOUT_FILENO, STDERR_FILENO);
	output.take = shown_result_take;
	output.arg = &shown;
	r = copy(client, &output, err);
	if (r == 0) {
		client_drain(client);
		shown_result_report(output.result);
		r = shown_result_exit_code(output.result);
	}
	client_close(client);
	return r;
}

static int add_context(
	struct client *client, const char *sandbox, const char *text, json_t *body, struct err *err)
{
	char context[RESOLVE_ID_LEN + 1];
	int r = text ? context_ref_find(client, sandbox, text, context, err) : 0;

	if (r == 0 && text)
		json_object_set_new(body, "context_id", json_string(context));
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct run_code_values *v = values;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *body = NULL, *answer = NULL;
	struct client_call call = {.method = "POST"};
	auto_free char *path = NULL;
	struct client *client;
	bool is_fresh = argc < 2;
	int r = make_body(v, argv[0], &body, err);

	if (r == 0 && !is_fresh && v->template_name)
		r = err_set(
			err, ERR_INVALID, "--template does not go with a sandbox, which has one");
	if (r == 0)
		r = set_text(body, "template", v->template_name, err);
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0 && v->is_meant)
		client_mean_all(client);
	if (r == 0 && !is_fresh)
		r = resolve_id(client, argv[1], id, err);
	if (r == 0 && is_fresh && v->context)
		r = err_set(err, ERR_INVALID, "--context needs the sandbox that it is in");
	if (r == 0)
		r = add_context(client, id, v->context, body, err);
	if (r < 0)
		return r;
	path = is_fresh ? mem_strdup("/v1/executions")
			: mem_printf("/v1/sandboxes/%s/executions", id);
	call.path = path;
	call.body = body;
	if (!v->detach && !cli_wants_json(cli))
		return stream(client, &call, v, err);
	r = client_json(client, &call, &answer, err);
	if (r < 0)
		return r;
	cli_print_answer(cli, answer, cli_text(answer, "id"));
	return v->detach ? 0 : shown_result_exit_code(answer);
}

const struct command cmd_run_code = {
	.name = "run-code",
	.operands = "FILE [ID]",
	.summary = "run code in a sandbox, or in one of its own, for its result",
	.details =
		"FILE is on this computer; - is standard input. Code that defines handler(event, "
		"context)\n"
		"is called as AWS Lambda calls it; other code is a script. The result is "
		"printed as JSON\n"
		"after the output; the exit code is 0 if it succeeded, 1 if it failed, 124 after "
		"a timeout. Without ID it runs in a fresh sandbox, which is gone afterwards.\n\n"
		"  sandlot run-code app.py --event '{\"name\": \"Ada\"}'\n"
		"  sandlot run-code app.py 01k9 --event '{\"name\": \"Ada\"}'\n"
		"  sandlot run-code -l python - 01k9 <<< '6 * 7'\n"
		"  sandlot run-code --save . plot.py 01k9\n"
		"  sandlot run-code -f data.csv sum.py\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct run_code_values),
	.min_operands = 1,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_FILES,
	.run = run,
};
