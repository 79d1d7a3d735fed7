/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/process_ref.h"
#include "cli/terminal/live_exec.h"
#include "cli/terminal/reconnect.h"

#include <string.h>

/* Short enough for any proxy on the way; then it is asked again. */
#define HOLD "/wait?timeout_ms=30000"

static bool has_ended(const json_t *process)
{
	const char *status = json_string_value(json_object_get(process, "status"));

	return status && strcmp(status, "exited") == 0;
}

static int wait_for_end(
	struct client *client, const struct process_ref *ref, json_t **ret, struct err *err)
{
	struct reconnect reconnect = {0};
	int r = 0;

	/* The caller had an answer a moment ago. */
	reconnect_connected(&reconnect);
	while (r == 0) {
		json_auto_t *process = NULL;

		r = process_ref_ask(client, ref, "GET", HOLD, NULL, &process, err);
		if (r < 0) {
			r = reconnect_wait(&reconnect, client, r, err);
			continue;
		}
		reconnect_connected(&reconnect);
		if (has_ended(process)) {
			*ret = json_incref(process);
			return 0;
		}
	}
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	json_auto_t *process = NULL;
	json_auto_t *now = NULL;
	struct process_ref ref;
	struct client *client;
	char note[512];
	int r = cli_connect(cli, &client, err);

	(void)values, (void)argc;
	if (r == 0)
		r = process_ref_find(client, argv[0], argv[1], &ref, err);
	/* At once, so that a daemon or process that is not there is told without patience. */
	if (r == 0)
		r = process_ref_ask(client, &ref, "GET", "", NULL, &now, err);
	if (r == 0)
		r = process_ref_name(now, &ref, err);
	if (r == 0)
		r = wait_for_end(client, &ref, &process, err);
	if (r < 0)
		return r;
	r = live_exec_exit_code(process, note, sizeof(note));
	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not say how the process ended");
	if (cli_wants_json(cli))
		cli_print_json(process);
	else if (note[0])
		cli_note("%s", note);
	return r;
}

const struct command cmd_wait = {
	.name = "wait",
	.operands = "SANDBOX PROCESS",
	.summary = "wait for a process to end, and end with its exit code",
	.details = "Prints nothing, or with --json the process; on standard error why it failed, "
		   "if that is\n"
		   "known. A daemon that is restarted meanwhile is asked again.\n\n"
		   "  sandlot wait 01k9 p7 || echo failed\n",
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
