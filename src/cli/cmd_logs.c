/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/follow.h"
#include "cli/live_exec.h"

struct logs_values {
	bool follow;
	struct option_number from;
};

static const struct option options[] = {
	{OPTION_FLAG, 'f', "follow", NULL, "go on until the process has ended",
		offsetof(struct logs_values, follow)},
	{OPTION_NUMBER, 0, "from", "N", "leave the first N bytes out",
		offsetof(struct logs_values, from)},
	{OPTION_END},
};

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct logs_values *v = values;
	struct follow follow = {.from = v->from.value, .is_once = !v->follow};
	json_auto_t *result = NULL;
	struct process_ref ref;
	struct client *client;
	int ignored;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = process_ref_find(client, argv[0], argv[1], &ref, err);
	if (r < 0)
		return r;
	follow.process = &ref;
	r = follow_run(client, &follow, &result, err);
	return r == 0 && result ? live_exec_report(result, &ignored, err) : r;
}

const struct command cmd_logs = {
	.name = "logs",
	.operands = "SANDBOX PROCESS",
	.summary = "show what a process has printed",
	.details =
		"Byte for byte: its stdout on standard output, its stderr on standard error. "
		"What is\n"
		"no longer kept (the middle of more than 16 MiB) is marked on standard error, "
		"and so is\n"
		"why it ended, if more is known than its exit code. With -f a lost connection is "
		"made\n"
		"again and nothing is shown twice. The exit code is 0, however the process "
		"ended;\n"
		"\"sandlot wait\" has that.\n\n"
		"  sandlot logs -f 01k9 p7\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct logs_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
