/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/completion.h"

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)cli, (void)values, (void)argc;
	return completion_write(argv[0], stdout, err);
}

const struct command cmd_completion = {
	.name = "completion",
	.operands = "bash|fish|zsh",
	.summary = "write completions for a shell",
	.details = "  eval \"$(sandlot completion bash)\"            # in ~/.bashrc\n"
		   "  source <(sandlot completion zsh)              # in ~/.zshrc\n"
		   "  sandlot completion fish | source              # in config.fish\n",
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_SHELLS,
	.run = run,
};
