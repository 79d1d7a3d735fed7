/* SPDX-License-Identifier: Apache-2.0 */
/* adopt: makes orphans, which have files but no row in the daemon's database, sandboxes again. */
#include "cli/command.h"
#include "cli/orphan_ids.h"

#include <stdio.h>
#include <string.h>

struct adopt_values {
	const char *owner;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "owner", "ORG/USER", "whose they become; without it they are yours",
		offsetof(struct adopt_values, owner)},
	{OPTION_END},
};

static int make_body(const char *owner, json_t **ret_body, struct err *err)
{
	const char *slash = owner ? strchr(owner, '/') : NULL;

	if (owner && (!slash || slash == owner || !slash[1]))
		return err_explain(err, ERR_INVALID, NULL, "write --owner acme/ann",
			"--owner is an organization and a user, with / between");
	*ret_body = owner ? json_pack("{s:s%, s:s}", "organization", owner, (size_t)(slash - owner),
				    "user", slash + 1)
			  : json_object();
	return 0;
}

static int adopt(struct cli *cli, struct client *client, const char *text, const json_t *body,
	struct err *err)
{
	auto_free char *path = NULL;
	char id[ORPHAN_ID_LEN + 1];
	json_auto_t *answer = NULL;
	int r = orphan_ids_resolve(client, text, id, err);

	if (r < 0)
		return r;
	path = mem_printf("/v1/orphans/%s/adopt", id);
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		puts(id);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct adopt_values *v = values;
	json_auto_t *body = NULL;
	struct client *client;
	int r = make_body(v->owner, &body, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	for (int i = 0; i < argc && r == 0; i++)
		r = adopt(cli, client, argv[i], body, err);
	return r;
}

const struct command cmd_adopt = {
	.name = "adopt",
	.operands = "ID...",
	.summary = "make orphans sandboxes again",
	.details = "Each becomes a stopped sandbox with its files and the default settings.\n\n"
		   "  sandlot ls --orphans\n"
		   "  sandlot adopt --owner acme/ann 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct adopt_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
