/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/follow.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/reconnect.h"
#include "cli/terminal/process/remote_shell.h"

struct attach_values {
	const char *member;
};

static const struct option options[] = {
	OPTION_MEMBER(offsetof(struct attach_values, member)),
	{OPTION_END},
};

#define REPLAY_BYTES (256 * 1024) /* as much as a terminal replays */

static int attach_terminal(struct client *client, const struct process_ref *ref, struct err *err)
{
	struct remote_shell shell = {.ref = *ref};
	int exit_code = 0;
	int r = remote_shell_check("use \"sandlot logs -f\" to watch without a terminal", err);

	if (r == 0)
		r = remote_shell_run(client, &shell, &exit_code, err);
	return r < 0 ? r : exit_code;
}

static int attach_pipes(struct client *client, const struct process_ref *ref, const json_t *process,
	struct err *err)
{
	json_int_t bytes = json_integer_value(json_object_get(process, "output_bytes"));
	struct follow follow = {
		.process = ref,
		.from = bytes > REPLAY_BYTES ? (uint64_t)(bytes - REPLAY_BYTES) : 0,
		.with_stdin = json_is_true(json_object_get(process, "stdin_open")),
	};
	json_auto_t *result = NULL;
	int exit_code = 0;
	int r = interrupt_hold(client_interrupt(client), err);

	if (r < 0)
		return r;
	interrupt_watch(client_interrupt(client), true);
	r = follow_run(client, &follow, &result, err);
	if (r < 0 && (client_interrupt(client)->signal || reconnect_is_for(err)))
		process_ref_tell(client, ref, "attach");
	if (r == 0)
		r = live_exec_report(result, NULL, &exit_code, err);
	return r < 0 ? r : exit_code;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct attach_values *v = values;
	json_auto_t *process = NULL;
	struct process_ref ref;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		client_mean_member(client, v->member);
	if (r == 0)
		r = process_ref_find(client, argv[0], argv[1], &ref, err);
	if (r == 0)
		r = process_ref_ask(client, &ref, "GET", "", NULL, &process, err);
	/* Under its own name from now on: a number may be somebody else's later. */
	if (r == 0)
		r = process_ref_name(process, &ref, err);
	if (r < 0)
		return r;
	if (json_is_true(json_object_get(process, "pty")))
		return attach_terminal(client, &ref, err);
	return attach_pipes(client, &ref, process, err);
}

const struct command cmd_attach = {
	.name = "attach",
	.operands = "SANDBOX PROCESS",
	.summary = "go back to a process that runs in a sandbox",
	.details = "One with a terminal gets yours: it shows the last 256 KiB of what it printed, "
		   "and\n"
		   "Ctrl-P Ctrl-Q leaves it again. Of any other the output is followed and "
		   "standard\n"
		   "input passed on; Ctrl-C leaves it running. The exit code is that of the "
		   "process.\n\n"
		   "  sandlot attach 01k9 p7\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct attach_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
