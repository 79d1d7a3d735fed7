/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/resolve.h"

#include <stdio.h>

struct open_values {
	struct option_number expires_ms;
};

static const struct option options[] = {
	{OPTION_SECONDS, 0, "expires", "TIME", "for how long the link is good (8h); a day",
		offsetof(struct open_values, expires_ms)},
	{OPTION_END},
};

static int make_link(struct client *client, const char *id, const char *port,
	const struct open_values *v, json_t **ret_link, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/ports/%s/links", id, port);
	json_auto_t *body = json_object();

	if (v->expires_ms.is_set)
		json_object_set_new(body, "expires_in_s",
			json_integer((json_int_t)(v->expires_ms.value / 1000)));
	return client_json(client,
		&(struct client_call){.method = "POST", .path = path, .body = body}, ret_link, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *link = NULL;
	struct client *client;
	const char *url;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r == 0)
		r = make_link(client, id, argv[1], values, &link, err);
	if (r < 0)
		return r;
	url = json_string_value(json_object_get(link, "url"));
	if (cli_wants_json(cli))
		cli_print_json(link);
	else if (url)
		puts(url);
	return 0;
}

const struct command cmd_open = {
	.name = "open",
	.operands = "SANDBOX PORT",
	.summary = "print a link that opens the preview of a port",
	.details = "Whoever has the link may see what listens on that port, until it expires.\n\n"
		   "  sandlot open 01k9 3000\n"
		   "  xdg-open \"$(sandlot open --expires 8h 01k9 3000)\"\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct open_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
