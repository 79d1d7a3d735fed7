/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: a person types code, and each piece that is whole runs in a context. Whatever was made for it (the context,
 * a sandbox) is removed when the input ends, also by a signal.
 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/home_file.h"
#include "cli/remote/context_ref.h"
#include "cli/remote/removal.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/input/line_editor.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output/shown_result.h"
#include "cli/terminal/terminal.h"
#include "cli/text/code_input.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DAY_S	  86400
#define INPUT_MAX (1u << 20)

struct repl_values {
	const char *language, *context, *cwd, *save, *template_name;
	struct option_list env;
	struct option_number timeout;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "context", "CONTEXT", "go on in this context, which stays",
		offsetof(struct repl_values, context)},
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated",
		offsetof(struct repl_values, env)},
	{OPTION_CHOICE, 'l', "language", "NAME", "what you type; python",
		offsetof(struct repl_values, language), .choices = "python javascript typescript"},
	{OPTION_TEXT, 0, "save", "DIR", "save figures there; where you are, if you say nothing",
		offsetof(struct repl_values, save)},
	{OPTION_TEXT, 't', "template", "NAME", "without ID: what its sandbox starts from",
		offsetof(struct repl_values, template_name)},
	{OPTION_SECONDS, 'T', "timeout", "TIME", "end each input after so long; a day",
		offsetof(struct repl_values, timeout)},
	{OPTION_TEXT, 'w', "workdir", "DIR", "begin in this directory",
		offsetof(struct repl_values, cwd)},
	{OPTION_END},
};

struct repl {
	const struct repl_values *values;
	struct client *client;
	struct client *second; /* for an interrupt while the first one is in use */
	struct interrupt *interrupt;
	char sandbox[RESOLVE_ID_LEN + 1];
	char context[RESOLVE_ID_LEN + 1];
	char language[16];
	bool owns_sandbox, owns_context;
	bool has_terminal;
	bool has_failed;
	int end_signal; /* that asks us to leave */
	struct shown_result shown;
};

/* --- one input --- */

static void ask_interrupt(struct repl *repl)
{
	auto_free char *path =
		mem_printf("/v1/sandboxes/%s/contexts/%s/interrupt", repl->sandbox, repl->context);
	struct err err;
	int r = repl->second ? 0 : client_clone(repl->client, &repl->second, &err);

	if (r == 0)
		r = client_json(repl->second, &(struct client_call){.method = "POST", .path = path},
			NULL, &err);
	if (r < 0)
		cli_complain(&err, NULL);
}

/* Passes Ctrl-C on; any other signal ends the input and us. */
static int heed_signal(struct repl *repl, struct err *err)
{
	struct signalfd_siginfo info;

	if (repl->interrupt->fd < 0 ||
		read(repl->interrupt->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo == SIGINT) {
		ask_interrupt(repl);
		return 0;
	}
	repl->end_signal = (int)info.ssi_signo;
	return err_set(err, ERR_UNAVAILABLE, "interrupted");
}

static int copy(struct repl *repl, struct output_stream *output, struct err *err)
{
	char chunk[65536];
	int r;

	for (;;) {
		ssize_t n;

		client_wake(repl->client, repl->interrupt->fd, -1);
		/* Also between bytes that come without a pause. */
		r = heed_signal(repl, err);
		if (r < 0)
			return r;
		n = client_read(repl->client, chunk, sizeof(chunk), err);
		if (n == CLIENT_WOKEN)
			continue;
		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_explain(err, ERR_UNAVAILABLE, "connection_lost",
				"type it again, when the daemon is back",
				"the daemon closed the stream before the input had run");
		r = output_stream_feed(output, chunk, (size_t)n, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static void tell_end(struct repl *repl, const json_t *execution)
{
	repl->has_failed = strcmp(cli_text(execution, "status"), "succeeded") != 0;
	shown_result_report(execution);
	if (strcmp(cli_text(execution, "state"), "lost") == 0)
		cli_note("what was defined is lost; the next input begins anew");
}

static int run_input(struct repl *repl, const char *code, struct err *err)
{
	auto_(output_stream_fini) struct output_stream output = {0};
	auto_free char *path = mem_printf("/v1/sandboxes/%s/executions", repl->sandbox);
	const struct option_number *timeout = &repl->values->timeout;
	json_auto_t *body = json_pack("{s:s, s:s, s:I}", "context_id", repl->context, "code", code,
		"timeout_ms",
		timeout->is_set ? (json_int_t)timeout->value : (json_int_t)DAY_S * 1000);
	int r;

	if (!body)
		return err_set(err, ERR_INVALID, "this is not UTF-8 text");
	output_stream_init(&output, STDOUT_FILENO, STDERR_FILENO);
	output.take = shown_result_take;
	output.arg = &repl->shown;
	r = client_open(repl->client,
		&(struct client_call){.method = "POST",
			.path = path,
			.body = body,
			.accept = "text/event-stream"},
		err);
	if (r == 0)
		r = copy(repl, &output, err);
	if (r == 0) {
		client_drain(repl->client);
		tell_end(repl, output.result);
	}
	client_close(repl->client);
	return r;
}

/* --- the conversation --- */

static bool is_farewell(const char *text)
{
	static const char *const words[] = {"exit\n", "exit()\n", "quit\n", "quit()\n", ".exit\n"};

	for (size_t i = 0; i < array_len(words); i++) {
		if (strcmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

/* Reads until it is whole: 1, 0 at the end, -EINTR if what was typed is to be forgotten. */
static int read_input(struct repl *repl, struct line_editor *editor, struct buf *input, char **ret,
	struct err *err)
{
	int r;

	input->len = 0;
	do {
		free(*ret);
		*ret = NULL;
		r = line_editor_read(editor,
			input->len		   ? "... "
			: repl->language[0] == 'p' ? ">>> "
						   : "> ",
			input, err);
		if (r < 0)
			return r;
		/* What is not whole at the end is run all the same: the interpreter says why. */
		if (r == 0 && input->len == 0)
			return 0;
		*ret = mem_printf("%.*s", (int)input->len, (const char *)input->data);
	} while (r > 0 && !code_input_is_whole(repl->language, *ret));
	return 1;
}

static int converse(struct repl *repl, struct line_editor *editor, struct err *err)
{
	auto_(buf_fini) struct buf input = BUF_INIT(INPUT_MAX);
	int r;

	for (;;) {
		auto_free char *code = NULL;

		r = read_input(repl, editor, &input, &code, err);
		if (r == -EINTR && repl->interrupt->signal == SIGINT && repl->has_terminal) {
			cli_note("%sinterrupted", input.len ? "" : "\n");
			continue;
		}
		if (r == -EINTR) {
			repl->end_signal = repl->interrupt->signal;
			return 0;
		}
		if (r <= 0 || is_farewell(code))
			break;
		if (code[strspn(code, " \t\r\n")] == '\0')
			continue;
		r = run_input(repl, code, err);
		if (repl->end_signal)
			return 0;
		if (r < 0 && !repl->has_terminal)
			return r;
		if (r < 0)
			cli_complain(err, NULL);
	}
	if (r == 0 && repl->has_terminal)
		cli_print("\n");
	return r < 0 ? r : 0;
}

/* --- what it runs in --- */

static int make_context(struct repl *repl, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/contexts", repl->sandbox);
	const struct repl_values *v = repl->values;
	json_auto_t *body = json_pack("{s:s, s:i}", "language",
		v->language ? v->language : "python", "idle_timeout_s", DAY_S);
	json_auto_t *answer = NULL;
	json_t *pairs;
	int r;

	if (v->cwd && json_object_set_new(body, "cwd", json_string(v->cwd)) < 0)
		return err_set(err, ERR_INVALID, "--workdir is not UTF-8 text");
	if (v->env.count > 0) {
		r = create_spec_pairs(&v->env, "--env", &pairs, err);
		if (r < 0)
			return r;
		json_object_set_new(body, "env", pairs);
	}
	r = client_json(repl->client,
		&(struct client_call){.method = "POST", .path = path, .body = body}, &answer, err);
	if (r < 0)
		return r;
	snprintf(repl->context, sizeof(repl->context), "%s", cli_text(answer, "id"));
	snprintf(repl->language, sizeof(repl->language), "%s", cli_text(answer, "language"));
	repl->owns_context = true;
	return 0;
}

static int find_context(struct repl *repl, struct err *err)
{
	auto_free char *path = NULL;
	json_auto_t *answer = NULL;
	int r = context_ref_find(
		repl->client, repl->sandbox, repl->values->context, repl->context, err);

	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/contexts/%s", repl->sandbox, repl->context);
	r = client_json(
		repl->client, &(struct client_call){.method = "GET", .path = path}, &answer, err);
	if (r == 0)
		snprintf(
			repl->language, sizeof(repl->language), "%s", cli_text(answer, "language"));
	return r;
}

static int find_sandbox(struct repl *repl, const char *text, struct err *err)
{
	const struct create_spec spec = {.template = repl->values->template_name};
	json_auto_t *made = NULL;
	int r;

	if (text)
		return resolve_id(repl->client, text, repl->sandbox, err);
	r = create_spec_send(repl->client, &spec, repl->sandbox, &made, err);
	if (r < 0)
		return r;
	repl->owns_sandbox = true;
	return create_spec_await(repl->client, &made, err);
}

static void leave(struct repl *repl)
{
	auto_free char *path = NULL;
	struct err err;
	int r = 0;

	interrupt_watch(repl->interrupt, false);
	if (repl->owns_sandbox) {
		r = removal_run(repl->client, repl->sandbox, true, &err);
	} else if (repl->owns_context) {
		path = mem_printf("/v1/sandboxes/%s/contexts/%s", repl->sandbox, repl->context);
		r = client_json(repl->client,
			&(struct client_call){.method = "DELETE", .path = path}, NULL, &err);
	}
	if (r < 0)
		cli_complain(&err, NULL);
	client_free(repl->second);
}

static int check(const struct repl_values *v, const char *sandbox, struct err *err)
{
	if (sandbox && v->template_name)
		return err_set(
			err, ERR_INVALID, "--template does not go with a sandbox, which has one");
	if (!sandbox && v->context)
		return err_set(err, ERR_INVALID, "--context needs the sandbox that it is in");
	if (v->context && (v->language || v->cwd || v->env.count > 0))
		return err_set(err, ERR_INVALID,
			"--language, --env and --workdir are of a new context, not of --context");
	return 0;
}

static int talk(struct repl *repl, struct err *err)
{
	auto_free char *name = mem_printf("sandlot/%s_history", repl->language);
	auto_free char *history = home_file_path("XDG_STATE_HOME", ".local/state", name);
	auto_(line_editor_freep) struct line_editor *editor = NULL;
	struct err unwritable;

	/* Without a place for it there is no history. */
	if (history && home_file_make_parents(history, 0700, &unwritable) < 0)
		history[0] = '\0';
	editor = line_editor_new(repl->interrupt, history && history[0] ? history : NULL);
	if (repl->has_terminal)
		cli_note("%s in %s; Ctrl-C interrupts, Ctrl-D leaves", repl->language,
			repl->sandbox);
	return converse(repl, editor, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct repl_values *v = values;
	const char *text = argc > 0 ? argv[0] : NULL;
	struct repl repl = {.values = v, .has_terminal = terminal_is_there()};
	int r = check(v, text, err);

	if (r == 0)
		r = cli_connect(cli, &repl.client, err);
	if (r < 0)
		return r;
	repl.interrupt = client_interrupt(repl.client);
	repl.shown = (struct shown_result){.save = v->save ? v->save : ".",
		.prefix = "figure-",
		.keeps_files = true,
		.hides_value = true};
	r = interrupt_hold(repl.interrupt, err);
	if (r == 0)
		r = find_sandbox(&repl, text, err);
	if (r == 0)
		r = v->context ? find_context(&repl, err) : make_context(&repl, err);
	if (r == 0)
		r = talk(&repl, err);
	leave(&repl);
	if (r < 0)
		return r;
	if (repl.end_signal)
		return 128 + repl.end_signal;
	return !repl.has_terminal && repl.has_failed ? 1 : 0;
}

const struct command cmd_repl = {
	.name = "repl",
	.operands = "[ID]",
	.summary = "type code, line by line, into an interpreter of a sandbox",
	.details =
		"What is typed runs in a context: what it defines stays. An input that is not "
		"whole (an open\n"
		"bracket, a block of Python) goes on in the next line; a block ends with an empty "
		"one. The\n"
		"last value is shown; figures are saved as figure-1.png and so on. In Python "
		"!command and\n"
		"%pip work as in notebooks. Ctrl-C interrupts what runs, Ctrl-D or exit leaves, "
		"and what\n"
		"was typed is kept for the arrow keys. Without ID it makes a sandbox, which is "
		"gone\n"
		"afterwards.\n\n"
		"  sandlot repl\n"
		"  sandlot repl 01k9 -l javascript\n"
		"  sandlot repl 01k9 --context 01k9ctx\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct repl_values),
	.min_operands = 0,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
