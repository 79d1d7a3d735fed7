/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: a sandbox for one command. Whatever happens after the sandbox exists (a failed command, a
 * signal, a reader that left), it is removed before we leave, unless --keep says otherwise.
 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/exec_spec.h"
#include "cli/interrupt.h"
#include "cli/live_exec.h"
#include "cli/removal.h"

#include <fcntl.h>
#include <unistd.h>

struct run_values {
	struct create_spec create;
	struct exec_spec exec;
	bool keep;
	bool no_stdin;
};

static const struct option options[] = {
	{OPTION_FLAG, 'k', "keep", NULL, "leave the sandbox there and name it on standard error",
		offsetof(struct run_values, keep)},
	{OPTION_FLAG, 'n', "no-stdin", NULL, "do not pass standard input on",
		offsetof(struct run_values, no_stdin)},
	{OPTION_END},
};

static void leave(struct client *client, const char *id, bool keep)
{
	struct err err;

	interrupt_watch(client_interrupt(client), false);
	if (keep) {
		cli_note("kept %s", id);
		return;
	}
	if (removal_run(client, id, true, &err) < 0) {
		cli_complain(&err, id);
		cli_note("it may still be there: sandlot rm --purge %s", id);
	}
}

/* Something to pass on: neither a terminal nor closed. */
static bool has_stdin(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0 && !isatty(STDIN_FILENO);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct run_values *v = values;
	bool with_stdin = !v->no_stdin && has_stdin();
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *body = NULL;
	struct client *client;
	int exit_code;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = exec_spec_body(&v->exec, NULL, argc, argv, with_stdin, &body, err);
	if (r == 0)
		r = interrupt_hold(client_interrupt(client), err);
	/* Not watched: a request to create that is cut in the middle leaves a sandbox without a
	 * name. */
	if (r == 0)
		r = create_spec_send(client, &v->create, id, NULL, err);
	if (r < 0)
		return r;
	interrupt_watch(client_interrupt(client), true);
	r = live_exec_run(client, id, body, cli_wants_json(cli), &exit_code, err);
	leave(client, id, v->keep);
	return r < 0 ? r : exit_code;
}

const struct command cmd_run = {
	.name = "run",
	.operands = "[--] COMMAND [ARG...]",
	.summary = "run a command in a new sandbox and remove it afterwards",
	.details =
		"Output is shown as it comes; the exit code is the command's own, 124 after a "
		"timeout,\n"
		"128+n after signal n. Standard input is passed on if it is not a terminal (up to\n"
		"1 MiB). Ctrl-C ends the command and still removes the sandbox.\n\n"
		"  sandlot run -- python3 -c 'print(6 * 7)'\n"
		"  sandlot run --network none --memory 256Mi -T 5s -- ./untrusted\n"
		"  echo hello | sandlot run cat\n",
	.tables = {{create_spec_options, offsetof(struct run_values, create)},
		{exec_spec_options, offsetof(struct run_values, exec)}, {options, 0}},
	.values_size = sizeof(struct run_values),
	.min_operands = 0,
	.max_operands = -1,
	.verbatim_after = 0,
	.takes = COMMAND_TAKES_A_PROGRAM,
	.run = run,
};
