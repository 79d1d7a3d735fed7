/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct client_call call = {.method = "POST", .path = "/v1/shutdown"};
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)values, (void)argc, (void)argv;
	if (r == 0)
		r = client_json(client, &call, NULL, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		puts("{\n  \"shutdown\": true\n}");
	else
		cli_print("the daemon at %s ends, and all sandboxes with it\n", client_url(client));
	return 0;
}

const struct command cmd_shutdown = {
	.name = "shutdown",
	.operands = "",
	.summary = "end the daemon, the keeper and all sandboxes",
	.details = "Workspaces stay on disk. To end the daemon alone and let the sandboxes go on,\n"
		   "send it SIGTERM.\n",
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
