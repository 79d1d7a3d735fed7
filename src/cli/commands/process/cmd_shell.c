/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/terminal/process/remote_shell.h"

struct shell_values {
	const char *cwd;
	const char *member;
	const char *user;
};

static const struct option options[] = {
	{OPTION_TEXT, 'C', "chdir", "DIR", "the same as -w", offsetof(struct shell_values, cwd)},
	OPTION_MEMBER(offsetof(struct shell_values, member)),
	{OPTION_TEXT, 'u', "user", "USER", "be this user of the sandbox",
		offsetof(struct shell_values, user)},
	{OPTION_TEXT, 'w', "workdir", "DIR", "begin in this directory",
		offsetof(struct shell_values, cwd)},
	{OPTION_END},
};

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct shell_values *v = values;
	struct remote_shell shell = {.user = v->user, .cwd = v->cwd};
	struct client *client;
	int exit_code = 0;
	int r = remote_shell_check("use \"sandlot exec -i ID bash\" for a script", err);

	(void)argc;
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		client_mean_member(client, v->member);
	if (r == 0)
		r = process_ref_in(client, argv[0], &shell.ref, err);
	if (r == 0)
		r = remote_shell_run(client, &shell, &exit_code, err);
	return r < 0 ? r : exit_code;
}

const struct command cmd_shell = {
	.name = "shell",
	.operands = "SANDBOX",
	.summary = "open a shell in a sandbox",
	.details = "As with ssh: the keys go there, also Ctrl-C, and the exit code is the shell's. "
		   "A\n"
		   "stopped sandbox is woken. A lost connection is made again by itself. Ctrl-P "
		   "Ctrl-Q\n"
		   "leaves the shell running; \"sandlot attach\" goes back to it.\n\n"
		   "  sandlot shell 01k9\n"
		   "  sandlot shell -u root -w /etc 01k9\n"
		   "  sandlot shell --member database 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct shell_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
