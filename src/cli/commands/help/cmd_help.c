/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define EXIT_CODES "exit-codes"

/* What each code of base/err.c means to somebody who writes a script. */
static const struct {
	const char *code, *meaning;
} exit_codes[] = {
	{"0", "it worked"},
	{"1", "what was asked for failed: a check of doctor or audit, code that run-code ran"},
	{"2", "the command line, or a value in it, is wrong; launch: the app cannot be started"},
	{"3", "there is no such sandbox, process, file or other thing"},
	{"4", "not in this state: it is taken, exists already, or was changed meanwhile; a job "
	      "failed"},
	{"70", "a failure inside the client or the daemon"},
	{"74", "a disk is full"},
	{"75", "not now: no daemon, no answer of a registry, too busy, over a quota, or too slow; "
	       "try again later"},
	{"77", "not allowed: no token, a wrong one, or one without the right"},
	{"124", "run, exec, wait: the command ran into its timeout"},
	{"127", "run, exec: there is no such program in the sandbox"},
	{"128+n", "signal n ended the command, or this program"},
};

static void print_exit_codes(void)
{
	auto_(table_fini) struct table table = TABLE_INIT(2);

	fputs("run, exec, attach and wait end with the exit code of the command in the sandbox.\n"
	      "In all other cases, and when there is none:\n\n",
		stdout);
	for (size_t i = 0; i < array_len(exit_codes); i++) {
		table_add(&table, "  %s", exit_codes[i].code);
		table_add(&table, "%s", exit_codes[i].meaning);
	}
	table_print(&table, stdout);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct command *command;

	(void)cli, (void)values;
	if (argc == 0) {
		command_help_all(stdout);
		return 0;
	}
	if (strcmp(argv[0], EXIT_CODES) == 0) {
		print_exit_codes();
		return 0;
	}
	command = command_find(argv[0]);
	if (!command)
		return command_unknown(argv[0], err);
	command_help(command, stdout);
	return 0;
}

const struct command cmd_help = {
	.name = "help",
	.operands = "[COMMAND|" EXIT_CODES "]",
	.summary = "show help about a command, or what exit codes mean",
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_COMMANDS,
	.run = run,
};
