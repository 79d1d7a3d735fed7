/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct command *command;

	(void)cli, (void)values;
	if (argc == 0) {
		command_help_all(stdout);
		return 0;
	}
	command = command_find(argv[0]);
	if (!command)
		return err_explain(err, ERR_INVALID, NULL, "\"sandlot help\" lists them all",
			"there is no command \"%s\"", argv[0]);
	command_help(command, stdout);
	return 0;
}

const struct command cmd_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.summary = "show help about a command",
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_COMMANDS,
	.run = run,
};
