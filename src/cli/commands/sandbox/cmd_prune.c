/* SPDX-License-Identifier: Apache-2.0 */
/* prune: purges the workspaces that removed sandboxes left. */
#include "base/clock.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/removal.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/input/question.h"
#include "cli/text/human.h"

#include <stdio.h>

struct prune_values {
	bool force;
	struct option_number older_than;
};

static const struct option options[] = {
	{OPTION_FLAG, 'f', "force", NULL, "do not ask", offsetof(struct prune_values, force)},
	{OPTION_SECONDS, 0, "older-than", "TIME", "only what was removed so long ago (7d)",
		offsetof(struct prune_values, older_than)},
	{OPTION_END},
};

static bool is_due(const json_t *left, const struct prune_values *v)
{
	int64_t removed_ms;

	if (!v->older_than.is_set)
		return true;
	return human_parse_time(cli_text(left, "removed_at"), &removed_ms) == 0 &&
	       removed_ms <= clock_wall_ms() - (int64_t)v->older_than.value;
}

/* Those to purge, and the question about them; *ret_due is a new array. */
static int choose(struct client *client, const struct prune_values *v, json_t **ret_due,
	char **ret_question, struct err *err)
{
	json_auto_t *removed = NULL, *due = json_array();
	char size[FORMAT_SIZE_LEN];
	uint64_t bytes = 0;
	json_t *left;
	size_t i;
	int r = listing_fetch_removed(client, &removed, err);

	if (r < 0)
		return r;
	json_array_foreach(removed, i, left)
	{
		if (!is_due(left, v) || !resolve_is_whole(cli_text(left, "id")))
			continue;
		json_array_append(due, left);
		bytes += (uint64_t)json_integer_value(json_object_get(left, "disk_bytes"));
	}
	format_size(bytes, size);
	*ret_question =
		mem_printf("Purge the workspaces of %zu removed sandboxes, which count %s of disk?",
			json_array_size(due), size);
	*ret_due = json_incref(due);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct prune_values *v = values;
	auto_free char *question = NULL;
	json_auto_t *due = NULL;
	struct client *client;
	const json_t *left;
	int exit_code = 0;
	size_t i;
	int r = cli_connect(cli, &client, err);

	(void)argc, (void)argv;
	if (r == 0)
		r = choose(client, v, &due, &question, err);
	if (r == 0 && !v->force && json_array_size(due) > 0)
		r = question_ask(question, err);
	if (r < 0)
		return r;
	json_array_foreach(due, i, left)
	{
		const char *id = cli_text(left, "id");

		r = removal_run(client, id, true, err);
		/* Somebody may have been faster. */
		if (r == 0)
			puts(id);
		else if (err->kind != ERR_NOT_FOUND) {
			cli_complain(err, id);
			exit_code = cli_exit_code(err);
		}
	}
	return exit_code;
}

const struct command cmd_prune = {
	.name = "prune",
	.operands = "",
	.summary = "purge what removed sandboxes left",
	.details = "Removes their workspaces for good and prints their ids. Asks first.\n\n"
		   "  sandlot ls --removed\n"
		   "  sandlot prune --force --older-than 7d\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct prune_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
