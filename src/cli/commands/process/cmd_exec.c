/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: plain, it is one request that lives as long as the command. With -d, -i or -t the command is
 * started in the background and then followed, fed or attached to, so that it survives a lost
 * connection.
 */
#include "cli/command.h"
#include "cli/exec_spec.h"
#include "cli/terminal/process/background_exec.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/remote_shell.h"

#include <string.h>

struct exec_values {
	struct exec_spec spec;
	struct option_list env;
	bool checkpoint;
	bool detach;
	bool keep_awake;
	bool interactive;
	bool isolate;
	bool tty;
	const char *member;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "checkpoint", NULL,
		"keep a copy of all files before, for sandlot undo, if anything changed",
		offsetof(struct exec_values, checkpoint)},
	{OPTION_FLAG, 'd', "detach", NULL, "leave it running and print the name of the process",
		offsetof(struct exec_values, detach)},
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated",
		offsetof(struct exec_values, env)},
	{OPTION_FLAG, 'i', "interactive", NULL, "pass standard input on, as it comes",
		offsetof(struct exec_values, interactive)},
	{OPTION_FLAG, 0, "isolate", NULL,
		"keep it apart from other commands: own processes, own /tmp, read-only system",
		offsetof(struct exec_values, isolate)},
	{OPTION_FLAG, 0, "keep-awake", NULL,
		"with -d: do not stop the sandbox as idle while it runs",
		offsetof(struct exec_values, keep_awake)},
	OPTION_MEMBER(offsetof(struct exec_values, member)),
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
		client_mean_member(client, v->member);
	if (r == 0)
		r = exec_spec_body(
			&v->spec, &v->env, argc - 1, argv + 1, plain && v->interactive, &body, err);
	if (r == 0 && v->spec.is_meant)
		client_mean_all(client);
	if (r == 0 && v->keep_awake)
		json_object_set_new(body, "keep_awake", json_true());
	if (r == 0 && v->checkpoint)
		json_object_set_new(body, "checkpoint", json_true());
	if (r == 0 && v->isolate)
		json_object_set_new(body, "isolate", json_true());
	if (r == 0)
		r = process_ref_in(client, argv[0], &ref, err);
	if (r == 0 && !plain)
		return background_exec_run(cli, client,
			&(struct background_exec){v->detach, v->interactive, v->tty}, body, &ref,
			err);
	if (r == 0)
		r = live_exec_run(
			client, ref.sandbox, NULL, body, cli_wants_json(cli), &exit_code, err);
	if (r == 0 && exit_code == EXIT_NO_PROGRAM && argc > 1 && strchr(argv[1], ' '))
		cli_note(
			"\"%s\" was taken as the name of one program; -c '%s' runs it as a line of "
			"the shell",
			argv[1], argv[1]);
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
		   "  sandlot exec -d 01k9 -- python3 -m http.server\n"
		   "  sandlot exec --checkpoint 01k9 -- make clean\n",
	.tables = {{exec_spec_options, offsetof(struct exec_values, spec)}, {options, 0}},
	.values_size = sizeof(struct exec_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = 1,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
