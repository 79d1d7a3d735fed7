/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: plain, it is one request that lives as long as the command. With -d, -i or -t the command is
 * started in the background and then followed, fed or attached to, so that it survives a lost
 * connection.
 */
#include "cli/command.h"
#include "cli/exec_spec.h"
#include "cli/follow.h"
#include "cli/interrupt.h"
#include "cli/live_exec.h"
#include "cli/patience.h"
#include "cli/remote_shell.h"
#include "cli/terminal.h"

#include <errno.h>
#include <string.h>

struct exec_values {
	struct exec_spec spec;
	struct option_list env;
	bool detach;
	bool interactive;
	bool isolate;
	bool tty;
};

static const struct option options[] = {
	{OPTION_FLAG, 'd', "detach", NULL, "leave it running and print the name of the process",
		offsetof(struct exec_values, detach)},
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated",
		offsetof(struct exec_values, env)},
	{OPTION_FLAG, 'i', "interactive", NULL, "pass standard input on, as it comes",
		offsetof(struct exec_values, interactive)},
	{OPTION_FLAG, 0, "isolate", NULL,
		"keep it apart from other commands: own processes, own /tmp, read-only system",
		offsetof(struct exec_values, isolate)},
	{OPTION_FLAG, 't', "tty", NULL, "give it a terminal", offsetof(struct exec_values, tty)},
	{OPTION_END},
};

/* Without -d, -i and -t; and JSON of a command that is waited for is one answer in any case. */
static bool is_plain(const struct cli *cli, const struct exec_values *v)
{
	return !v->detach && ((!v->interactive && !v->tty) || cli_wants_json(cli));
}

static int check(const struct cli *cli, const struct exec_values *v, struct err *err)
{
	if (v->tty && !v->detach && cli_wants_json(cli))
		return err_set(err, ERR_INVALID, "-t shows a terminal, not JSON; use -d with it");
	if (v->tty && v->interactive && !v->detach)
		return remote_shell_check(
			"leave -t out to pass a file or pipe on, or leave -i out to only watch",
			err);
	return 0;
}

static void ask_for_terminal(json_t *body)
{
	struct terminal_size size = terminal_size();
	const char *term = getenv("TERM");
	json_t *env = json_object_get(body, "env");

	json_object_set_new(body, "pty", json_true());
	json_object_set_new(body, "cols", json_integer(size.cols));
	json_object_set_new(body, "rows", json_integer(size.rows));
	if (!env) {
		env = json_object();
		json_object_set_new(body, "env", env);
	}
	if (term && term[0] && !json_object_get(env, "TERM"))
		json_object_set_new(env, "TERM", json_string(term));
}

static int start(struct client *client, const struct exec_values *v, json_t *body,
	struct process_ref *ref, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/exec", ref->sandbox);
	struct client_call call = {.method = "POST", .path = path, .body = body};
	int r;

	json_object_set_new(body, "background", json_true());
	if (v->tty)
		ask_for_terminal(body);
	else
		json_object_set_new(body, "stdin_open", json_boolean(v->interactive));
	r = client_json(client, &call, ret, err);
	return r < 0 ? r : process_ref_name(json_object_get(*ret, "process"), ref, err);
}

/* Follows it to its end. What ends us ends it, as it would a command of ours; but not the loss of
 * the daemon, which it survives. */
static int accompany(struct client *client, const struct process_ref *ref, bool with_stdin,
	int *ret_exit, struct err *err)
{
	struct follow follow = {.process = ref, .with_stdin = with_stdin};
	json_auto_t *result = NULL;
	int r;

	interrupt_watch(client_interrupt(client), true);
	r = follow_run(client, &follow, &result, err);
	interrupt_watch(client_interrupt(client), false);
	if (r == 0)
		return live_exec_report(result, ret_exit, err);
	if (patience_is_for(err))
		process_ref_tell(ref, "attach");
	else
		process_ref_kill(client, ref);
	return r;
}

static int run_in_background(struct cli *cli, struct client *client, const struct exec_values *v,
	json_t *body, struct process_ref *ref, struct err *err)
{
	json_auto_t *started = NULL;
	struct remote_shell shell;
	int exit_code = 0;
	int r = 0;

	/* Not watched yet: a start that is cut in the middle leaves a process without a name. */
	if (!v->detach && !(v->tty && v->interactive))
		r = interrupt_hold(client_interrupt(client), err);
	if (r == 0)
		r = start(client, v, body, ref, &started, err);
	if (r < 0)
		return r;
	if (v->detach && cli_wants_json(cli)) {
		cli_print_json(started);
	} else if (v->detach) {
		puts(ref->process);
	} else if (v->tty && v->interactive) {
		shell = (struct remote_shell){.ref = *ref, .is_new = true};
		r = remote_shell_run(client, &shell, &exit_code, err);
	} else {
		r = accompany(client, ref, v->interactive, &exit_code, err);
	}
	return r < 0 ? r : exit_code;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct exec_values *v = values;
	bool plain = is_plain(cli, v);
	struct process_ref ref = {0};
	json_auto_t *body = NULL;
	struct client *client;
	int exit_code = 0;
	int r = check(cli, v, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = exec_spec_body(
			&v->spec, &v->env, argc - 1, argv + 1, plain && v->interactive, &body, err);
	if (r == 0 && v->isolate)
		json_object_set_new(body, "isolate", json_true());
	if (r == 0)
		r = resolve_id(client, argv[0], ref.sandbox, err);
	if (r == 0 && !plain)
		return run_in_background(cli, client, v, body, &ref, err);
	if (r == 0)
		r = live_exec_run(client, ref.sandbox, body, cli_wants_json(cli), &exit_code, err);
	return r < 0 ? r : exit_code;
}

const struct command cmd_exec = {
	.name = "exec",
	.operands = "ID [--] COMMAND [ARG...]",
	.summary = "run a command in a sandbox",
	.details = "Output is shown as it comes; the exit code is the command's own, 124 after a "
		   "timeout,\n"
		   "128+n after signal n. A stopped sandbox is woken. With -d, -i or -t the "
		   "command\n"
		   "survives a lost connection. Ctrl-C ends it, but with -it it is typed there, "
		   "and\n"
		   "Ctrl-P Ctrl-Q leaves it running.\n\n"
		   "  sandlot exec 01k9 -- python3 -c 'print(1)'\n"
		   "  sandlot exec -T 10s -w /workspace 01k9 make test\n"
		   "  sandlot exec 01k9 -c 'ls | wc -l'\n"
		   "  sandlot exec -i 01k9 sort < names.txt\n"
		   "  sandlot exec -it 01k9 vim notes.txt\n"
		   "  sandlot exec -d 01k9 -- python3 -m http.server\n",
	.tables = {{exec_spec_options, offsetof(struct exec_values, spec)}, {options, 0}},
	.values_size = sizeof(struct exec_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = 1,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
