/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/remote/resolve.h"

struct fork_values {
	struct option_number count;
};

static const struct option options[] = {
	{OPTION_NUMBER, 'n', "count", "N", "how many; one", offsetof(struct fork_values, count)},
	{OPTION_END},
};

/* What was made goes to standard output, why others were not to standard error. */
static int show(const json_t *answer)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "sandboxes"), i, one)
		cli_print("%s\n", cli_text(one, "id"));
	json_array_foreach(json_object_get(answer, "errors"), i, one)
		cli_note("one was not made: %s", cli_text(one, "message"));
	return json_array_size(json_object_get(answer, "errors")) > 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct fork_values *v = values;
	json_auto_t *body = json_object(), *answer = NULL;
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r < 0)
		return r;
	if (v->count.is_set)
		json_object_set_new(body, "count", json_integer((json_int_t)v->count.value));
	path = mem_printf("/v1/sandboxes/%s/fork", id);
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	if (!cli_wants_json(cli))
		return show(answer);
	cli_print_json(answer);
	return json_array_size(json_object_get(answer, "errors")) > 0;
}

const struct command cmd_fork = {
	.name = "fork",
	.operands = "SANDBOX",
	.summary = "make new sandboxes with the files of one",
	.details =
		"Each gets a copy of all files as they are at one moment, and the settings of the\n"
		"sandbox but for its name and project. Processes are not copied. Prints an id for\n"
		"each; the exit code is 1 if not all were made.\n\n"
		"  sandlot fork web\n"
		"  sandlot fork web -n 4\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct fork_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
