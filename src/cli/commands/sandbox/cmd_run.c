/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: a sandbox for one command. Whatever happens after the sandbox exists (a failed command, a
 * signal, a reader that left), it is removed before we leave, unless --keep says otherwise.
 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/exec_spec.h"
#include "cli/foreign_words.h"
#include "cli/remote/removal.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/background_exec.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/remote_shell.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct run_values {
	struct create_spec create;
	struct exec_spec exec;
	bool detach;
	bool interactive;
	bool keep;
	bool no_stdin;
	bool remove;
	bool tty;
};

static const struct option options[] = {
	{OPTION_FLAG, 'd', "detach", NULL,
		"leave it running, and print the id of its sandbox, which stays",
		offsetof(struct run_values, detach)},
	{OPTION_FLAG, 'i', "interactive", NULL, "pass standard input on, also that of a terminal",
		offsetof(struct run_values, interactive)},
	{OPTION_FLAG, 'k', "keep", NULL, "leave the sandbox there and name it on standard error",
		offsetof(struct run_values, keep)},
	{OPTION_FLAG, 'n', "no-stdin", NULL, "do not pass standard input on",
		offsetof(struct run_values, no_stdin)},
	{OPTION_FLAG, 0, "rm", NULL, "remove the sandbox afterwards, which run does in any case",
		offsetof(struct run_values, remove)},
	{OPTION_FLAG, 0, "tty", NULL, "give it your terminal; -it is the same",
		offsetof(struct run_values, tty), .pair = "it"},
	{OPTION_END},
};

static void leave(
	struct client *client, const char *id, const char *name, bool keep, bool is_printed)
{
	struct err err;

	interrupt_watch(client_interrupt(client), false);
	if (keep && is_printed) {
		cli_note("it runs on; remove it with: sandlot rm --purge %s", name ? name : id);
		return;
	}
	if (keep) {
		cli_note("kept %s", id);
		return;
	}
	if (removal_run(client, id, true, &err) < 0) {
		cli_complain(&err, id);
		cli_note("it may still be there: sandlot rm --purge %s", id);
	}
}

/* What becomes of standard input. */
enum input {
	INPUT_NONE,
	INPUT_SMALL, /* it goes along with the request, which is fast */
	INPUT_STREAM,
};

/* A file that fits is small; what comes from elsewhere may have no end. */
static enum input judge_stdin(const struct run_values *v, bool as_json)
{
	struct pollfd now = {.fd = STDIN_FILENO, .events = POLLIN};
	struct stat st;
	off_t at;

	if (v->no_stdin || fstat(STDIN_FILENO, &st) < 0)
		return INPUT_NONE;
	if (isatty(STDIN_FILENO))
		return v->interactive ? INPUT_STREAM : INPUT_NONE;
	/* One answer as JSON has one request. */
	if (as_json)
		return INPUT_SMALL;
	at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (S_ISREG(st.st_mode) && st.st_size - at <= EXEC_SPEC_STDIN_MAX)
		return INPUT_SMALL;
	/* /dev/null, and a pipe that is empty and closed. */
	if ((S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) ||
		(poll(&now, 1, 0) == 1 && (now.revents & (POLLIN | POLLHUP)) == POLLHUP))
		return INPUT_NONE;
	return INPUT_STREAM;
}

static int check(const struct cli *cli, const struct run_values *v, struct err *err)
{
	if (v->detach && (v->tty || v->interactive))
		return err_set(
			err, ERR_INVALID, "-d leaves the command: -i and -it do not go with it");
	if (v->remove && (v->detach || v->keep))
		return err_set(err, ERR_INVALID,
			"-d and -k leave the sandbox there: --rm does not go with them");
	if (v->tty && cli_wants_json(cli))
		return err_set(err, ERR_INVALID, "-it shows a terminal, not JSON");
	return v->tty ? remote_shell_check("leave -t out to pass a file or pipe on", err) : 0;
}

static int run_shell(struct client *client, const struct run_values *v, const char *id,
	const char *mode, bool *keep, struct err *err)
{
	struct remote_shell shell = {
		.user = v->exec.user, .cwd = v->exec.cwd, .ends_with_us = true, .mode = mode};
	int exit_code = 0;
	int r;

	snprintf(shell.ref.sandbox, sizeof(shell.ref.sandbox), "%s", id);
	shell.ref.given = v->create.name;
	r = remote_shell_run(client, &shell, &exit_code, err);
	*keep = *keep || shell.has_left;
	return r < 0 ? r : exit_code;
}

/* In the background, if the command outlives this program, has a terminal, or reads what has no bound. */
static int run_command(struct cli *cli, struct client *client, const struct run_values *v,
	enum input input, json_t *body, const char *id, const char *mode, bool *keep,
	struct err *err)
{
	struct background_exec how = {.detach = v->detach,
		.interactive = v->tty || input == INPUT_STREAM,
		.tty = v->tty,
		.owns_sandbox = true,
		.mode = mode};
	struct process_ref ref = {.given = v->create.name};
	int exit_code = 0;
	int r;

	if (!how.detach && !how.interactive) {
		interrupt_watch(client_interrupt(client), true);
		r = live_exec_run(client, id, mode, body, cli_wants_json(cli), &exit_code, err);
		return r < 0 ? r : exit_code;
	}
	snprintf(ref.sandbox, sizeof(ref.sandbox), "%s", id);
	r = background_exec_run(cli, client, &how, body, &ref, err);
	*keep = *keep || how.has_left || (how.detach && r >= 0);
	return r;
}

/* Others take an image where a program stands here. */
static void explain_missing(const struct run_values *v, int argc, char **argv)
{
	if (argc == 0 || v->exec.line || v->create.template || !foreign_is_image(argv[0]))
		return;
	cli_note(
		"\"%s\" was taken as the name of a program; to start from an image: sandlot run -t "
		"%s -- %s",
		argv[0], argv[0], argc > 1 ? argv[1] : "COMMAND");
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct run_values *v = values;
	struct exec_spec exec = v->exec;
	enum input input = v->detach ? INPUT_NONE : judge_stdin(v, cli_wants_json(cli));
	bool is_shell = v->tty && argc == 0 && !v->exec.line;
	bool keep = v->keep;
	const char *mode = NULL;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *body = NULL, *made = NULL;
	struct client *client = NULL;
	int r = check(cli, v, err);

	/* The host has no program of its own. */
	exec.may_be_image = v->create.snapshot ||
			    (v->create.template && strcmp(v->create.template, "host") != 0 &&
				    strcmp(v->create.template, "browser") != 0);
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0 && exec.is_meant)
		client_mean_all(client);
	if (r == 0 && !is_shell)
		r = exec_spec_body(&exec, NULL, argc, argv, input == INPUT_SMALL, &body, err);
	if (r < 0 && !is_shell && argc == 0 && !exec.line && !exec.may_be_image &&
		err->kind == ERR_INVALID)
		snprintf(err->remedy, sizeof(err->remedy),
			"end with a command, such as: sandlot run -- echo hello; or for a shell: "
			"sandlot run -it");
	if (r == 0)
		r = interrupt_hold(client_interrupt(client), err);
	/* Not watched: a request to create that is cut in the middle leaves a sandbox without a
	 * name. */
	if (r == 0)
		r = create_spec_send(client, &v->create, id, &made, err);
	if (r < 0 && client)
		create_spec_suggest(client, &v->create, err);
	if (r < 0)
		return r;
	r = create_spec_await(client, &made, err);
	if (r < 0)
		create_spec_suggest(client, &v->create, err);
	if (r == 0)
		r = create_spec_await_packages(client, &v->create, id, err);
	/* What the owner could change in a sandbox that is gone afterwards is an option of the next run. */
	if (!keep && !v->detach)
		mode = cli_text(json_object_get(made, "network"), "mode");
	if (r < 0)
		keep = false; /* there is nothing in it */
	else
		r = is_shell ? run_shell(client, v, id, mode, &keep, err)
			     : run_command(cli, client, v, input, body, id, mode, &keep, err);
	if (r == EXIT_NO_PROGRAM)
		explain_missing(v, argc, argv);
	leave(client, id, v->create.name, keep, v->detach);
	return r;
}

const struct command cmd_run = {
	.name = "run",
	.operands = "[[--] COMMAND [ARG...]]",
	.summary = "run a command in a new sandbox and remove it afterwards",
	.details = "Output is shown as it comes; the exit code is the command's own, 124 after a "
		   "timeout,\n"
		   "128+n after signal n. Standard input is passed on as it comes if it is not a "
		   "terminal.\n"
		   "Ctrl-C ends the command and still removes the sandbox, with its workspace.\n\n"
		   "With -it the command gets your terminal, and a shell is run if none is named; "
		   "Ctrl-P Ctrl-Q\n"
		   "leaves it running. With -d it is left running at once.\n\n"
		   "Without a command, what the image of -t is made to run is run: its entrypoint "
		   "and command.\n\n"
		   "  sandlot run -- python3 -c 'print(6 * 7)'\n"
		   "  sandlot run --network none --memory 256Mi -T 5s -- ./untrusted\n"
		   "  echo hello | sandlot run cat\n"
		   "  sandlot run -it -t host\n"
		   "  sandlot run -d -p 8000 -- python3 -m http.server 8000\n",
	.tables = {{create_spec_options, offsetof(struct run_values, create)},
		{exec_spec_options, offsetof(struct run_values, exec)}, {options, 0}},
	.values_size = sizeof(struct run_values),
	.min_operands = 0,
	.max_operands = -1,
	.verbatim_after = 0,
	.takes = COMMAND_TAKES_A_PROGRAM,
	.run = run,
};
