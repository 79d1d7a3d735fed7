/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/remote/removal.h"

#include <stdio.h>
#include <string.h>

struct create_values {
	struct create_spec spec;
	bool no_wait;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "no-wait", NULL, "do not wait until its image is fetched",
		offsetof(struct create_values, no_wait)},
	{OPTION_END},
};

/* One that could not be made does not stay; after an interrupt it is made without us. */
static int await(struct client *client, const char *id, json_t **document, struct err *err)
{
	int r = create_spec_await(client, document, err);
	struct err ignored;

	if (r == -EINTR)
		cli_note("the sandbox %s will be there", id);
	else if (r < 0 && removal_run(client, id, true, &ignored) < 0)
		cli_note("it may still be there: sandlot rm --purge %s", id);
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct create_values *v = values;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *document = NULL;
	struct client *client = NULL;
	int r = cli_connect(cli, &client, err);

	(void)argc, (void)argv;
	if (r == 0)
		r = create_spec_send(client, &v->spec, id, &document, err);
	if (r == 0 && !v->no_wait)
		r = await(client, id, &document, err);
	if (r < 0 && client)
		create_spec_suggest(client, &v->spec, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		puts(id);
	if (v->no_wait)
		return 0;
	r = create_spec_await_packages(client, &v->spec, id, err);
	/* It is there and works, but for the packages: its files are kept until somebody decides. */
	if (r < 0 && strcmp(err->code, "dependencies_failed") == 0)
		snprintf(err->remedy, sizeof(err->remedy),
			"the sandbox stays: try again with \"sandlot deps %s ...\", or remove it "
			"with \"sandlot rm --purge %s\"",
			id, id);
	return r;
}

const struct command cmd_create = {
	.name = "create",
	.operands = "",
	.misplaced = "with --name NAME for its name and -t NAME for its template",
	.summary = "make a sandbox and print its id",
	.details =
		"The sandbox goes on until it is stopped, idle for too long, or removed. An image "
		"that was\n"
		"not used before is fetched first; with --no-wait that goes on after us, and\n"
		"\"sandlot inspect\" shows creating, then running, or error with the reason.\n\n"
		"  sandlot create --memory 2Gi -p 3000 -l team=web\n"
		"  id=$(sandlot create --network none)\n"
		"  sandlot create -t python:3.12-slim --no-wait\n",
	.tables = {{create_spec_options, offsetof(struct create_values, spec)}, {options, 0}},
	.values_size = sizeof(struct create_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
