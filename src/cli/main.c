/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot: the command line client. Talks HTTP to the daemon and knows nothing else of it.
 *
 * Exit codes: that of the command for run and exec, 128+n when a signal ended us, else the code of
 * the error's kind (base/err.c); 2 is a usage error.
 */
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/terminal/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define EXIT_SIGNAL 128

static int dispatch(struct cli *cli, int argc, char **argv, struct err *err)
{
	struct option_binding global = {cli_options, cli};
	const struct command *command;
	int operands;
	int r;

	/* No letter of the table, since commands use it for other things. */
	if (argc > 0 && strcmp(argv[0], "-v") == 0)
		cli->version = true;
	r = cli->version ? 0 : option_parse(&global, 1, 0, argc, argv, &operands, err);

	if (r < 0) {
		size_t len = strlen(err->remedy);

		snprintf(err->remedy + len, sizeof(err->remedy) - len, "see \"sandlot --help\"");
		return r;
	}
	if (cli->version) {
		printf("sandlot %s\n", SANDLOT_VERSION);
		return 0;
	}
	if (operands == 0 && !cli->help) {
		command_help_all(stderr);
		return err_class(ERR_INVALID)->exit_code;
	}
	if (operands == 0) {
		command_help_all(stdout);
		return 0;
	}
	command = command_find(argv[0]);
	if (!command)
		return command_unknown(argv[0], err);
	return command_run(command, cli, operands - 1, argv + 1, err);
}

/* What could not be written must not look like success; a reader who left is told nothing. */
static int finish_output(int code)
{
	struct err err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (errno == EPIPE)
		return EXIT_SIGNAL + SIGPIPE;
	err_sys(&err, "write standard output");
	cli_complain(&err, NULL);
	return code ? code : cli_exit_code(&err);
}

int main(int argc, char **argv)
{
	struct cli cli = {0};
	struct err err = {0};
	int signal_number;
	int r;

	/* A reader that leaves ends the output, not the cleaning up after it. */
	signal(SIGPIPE, SIG_IGN);
	r = dispatch(&cli, argc - 1, argv + 1, &err);
	signal_number = cli.client ? client_interrupt(cli.client)->signal : 0;
	if (r == -EPIPE)
		signal_number = SIGPIPE;
	if (signal_number)
		r = EXIT_SIGNAL + signal_number;
	if (r < 0) {
		cli_complain(&err, NULL);
		r = cli_exit_code(&err);
	}
	cli_fini(&cli);
	return finish_output(r);
}
