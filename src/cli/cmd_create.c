/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/create_spec.h"

#include <stdio.h>

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct create_spec *spec = values;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *document = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc, (void)argv;
	if (r == 0)
		r = create_spec_send(client, spec, id, &document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		puts(id);
	return 0;
}

const struct command cmd_create = {
	.name = "create",
	.operands = "",
	.summary = "make a sandbox and print its id",
	.details = "The sandbox goes on until it is stopped, idle for too long, or removed.\n\n"
		   "  sandlot create --memory 2Gi -p 3000 -l team=web\n"
		   "  id=$(sandlot create --network none)\n",
	.tables = {{create_spec_options, 0}},
	.values_size = sizeof(struct create_spec),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
