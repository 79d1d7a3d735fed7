/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/terminal/process/follow.h"

#include <stdio.h>
#include <string.h>

struct backup_values {
	bool detach;
};

static const struct option options[] = {
	{OPTION_FLAG, 'd', "detach", NULL, "print the id of the job and do not wait for it",
		offsetof(struct backup_values, detach)},
	{OPTION_END},
};

/* What came of it, as an error if nothing did. */
static int report(struct cli *cli, const json_t *job, struct err *err)
{
	const json_t *error = json_object_get(job, "error");

	if (strcmp(cli_text(job, "state"), "succeeded") != 0)
		return err_explain(err, ERR_UNAVAILABLE, NULL, NULL,
			"the backup was not written: %s",
			json_is_object(error) ? cli_text(error, "message")
					      : cli_text(job, "state"));
	if (cli_wants_json(cli))
		cli_print_json(job);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct backup_values *v = values;
	json_auto_t *job = NULL, *end = NULL;
	struct follow follow = {0};
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc, (void)argv;
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "POST", .path = "/v1/backups"}, &job, err);
	if (r < 0)
		return r;
	follow.job = cli_text(job, "id");
	if (v->detach) {
		cli_print("%s\n", follow.job);
		return 0;
	}
	r = follow_run(client, &follow, &end, err);
	return r < 0 ? r : report(cli, end, err);
}

const struct command cmd_backup = {
	.name = "backup",
	.operands = "",
	.summary = "write a backup of the state now",
	.details = "The daemon copies its database once a day by itself; this writes one more, as "
		   "a job\n"
		   "(see \"sandlot job\"), and prints its name. For administrators. \"sandlot "
		   "restore\" brings\n"
		   "one back.\n\n"
		   "  sandlot backup\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct backup_values),
	.min_operands = 0,
	.max_operands = 0,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
