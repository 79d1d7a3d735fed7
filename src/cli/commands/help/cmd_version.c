/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

#define TIMEOUT_MS 3000

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct client_call call = {
		.method = "GET", .path = "/v1/version", .timeout_ms = TIMEOUT_MS};
	json_auto_t *answer = NULL;
	struct client *client;
	const char *server;
	int r = cli_connect(cli, &client, err);

	(void)values, (void)argc, (void)argv;
	if (r < 0)
		return r;
	/* A daemon that cannot be asked is something to tell, not a failure. */
	r = client_json(client, &call, &answer, err);
	server = json_string_value(json_object_get(answer, "version"));
	if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:s, s:s?, s:s, s:s?}", "client",
			SANDLOT_VERSION, "server", server, "url", client_url(client), "error",
			r < 0 ? err->message : NULL);

		cli_print_json(document);
		return 0;
	}
	printf("client  %s\n", SANDLOT_VERSION);
	if (server)
		cli_print("daemon  %s at %s\n", server, client_url(client));
	else
		cli_print("daemon  unknown: %s\n",
			r < 0 ? err->message : "the daemon does not tell its version");
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.operands = "",
	.summary = "show the versions of client and daemon",
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
