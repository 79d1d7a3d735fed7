/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

static void print_table(const json_t *ports)
{
	static const char *const heading[] = {
		"PORT", "ADDRESS", "PID", "COMMAND", "PROCESS", "PREVIEW"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *port;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(ports, i, port)
	{
		const char *url = cli_text(port, "preview_url");
		bool is_public = json_is_true(json_object_get(port, "public"));

		table_add_number(&table, json_object_get(port, "port"));
		table_add(&table, "%s", cli_text(port, "address"));
		table_add_number(&table, json_object_get(port, "pid"));
		table_add(&table, "%s", cli_text(port, "command"));
		table_add(&table, "%s", cli_text(port, "process"));
		if (json_is_false(json_object_get(port, "reachable")))
			table_add(&table, "not reachable from outside");
		else
			table_add(&table, "%s%s", url, is_public ? " (public)" : "");
	}
	table_print(&table, stdout);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	json_auto_t *document = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)values, (void)argc;
	if (r == 0)
		r = resolve_get(client, argv[0], "/ports", &document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(document);
		return 0;
	}
	print_table(json_object_get(document, "ports"));
	if (json_is_true(json_object_get(document, "truncated")))
		cli_note("there are more than these");
	return 0;
}

const struct command cmd_ports = {
	.name = "ports",
	.operands = "SANDBOX",
	.summary = "list what listens in a sandbox",
	.details = "TCP ports of IPv4 and IPv6, who listens there, and where the preview is. Never "
		   "wakes\n"
		   "a stopped sandbox.\n\n"
		   "  sandlot ports 01k9\n"
		   "  sandlot ports -o json 01k9 | jq '.ports[].port'\n",
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
