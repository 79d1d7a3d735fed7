/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/resolve.h"
#include "cli/text/path_text.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX (32u * 1024)

struct diff_values {
	const char *since;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "since", "SNAPSHOT", "what changed since a snapshot, by its whole id",
		offsetof(struct diff_values, since)},
	{OPTION_END},
};

static char letter_of(const char *kind)
{
	if (strcmp(kind, "added") == 0)
		return 'A';
	return strcmp(kind, "deleted") == 0 ? 'D' : 'M';
}

static int show(const json_t *changes)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)changes, i, one)
	{
		auto_(buf_fini) struct buf line = BUF_INIT(LINE_MAX);

		buf_printf(&line, "%c", letter_of(cli_text(one, "kind")));
		path_text_add(&line, one, "path");
		cli_print("%.*s\n", (int)line.len, (const char *)line.data);
	}
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct diff_values *v = values;
	json_auto_t *changes = NULL;
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0 && v->since && !resolve_is_whole(v->since))
		r = err_set(err, ERR_INVALID, "--since takes the whole id of a snapshot");
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/changes%s%s", id, v->since ? "?since=" : "",
		v->since ? v->since : "");
	r = listing_fetch_all(client, path, "changes", &changes, err);
	if (r < 0)
		return r;
	if (!cli_wants_json(cli))
		return show(changes);
	cli_print_json(changes);
	return 0;
}

const struct command cmd_diff = {
	.name = "diff",
	.operands = "SANDBOX",
	.summary = "show which files a sandbox added, changed and deleted",
	.details = "Prints a line for each, of the system and of the workspace: A, M or D, and its "
		   "path.\n"
		   "A deleted directory stands for all that was in it.\n\n"
		   "  sandlot diff web\n"
		   "  sandlot diff web --since 01k9f3qz8hm2t5v7x1y4a6b8cd\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct diff_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
