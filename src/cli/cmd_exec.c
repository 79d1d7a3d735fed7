/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/exec_spec.h"
#include "cli/live_exec.h"
#include "cli/resolve.h"

struct exec_values {
	struct exec_spec spec;
	struct option_list env;
	bool with_stdin;
};

static const struct option options[] = {
	{OPTION_LIST, 'e', "env", "K=V", "set an environment variable; may be repeated",
		offsetof(struct exec_values, env)},
	{OPTION_FLAG, 'i', "stdin", NULL, "pass standard input on, up to 1 MiB",
		offsetof(struct exec_values, with_stdin)},
	{OPTION_END},
};

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct exec_values *v = values;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *body = NULL;
	struct client *client;
	int exit_code;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = exec_spec_body(
			&v->spec, &v->env, argc - 1, argv + 1, v->with_stdin, &body, err);
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r == 0)
		r = live_exec_run(client, id, body, cli_wants_json(cli), &exit_code, err);
	return r < 0 ? r : exit_code;
}

const struct command cmd_exec = {
	.name = "exec",
	.operands = "ID [--] COMMAND [ARG...]",
	.summary = "run a command in a sandbox",
	.details = "Output is shown as it comes; the exit code is the command's own, 124 after a "
		   "timeout,\n"
		   "128+n after signal n. A stopped sandbox is woken.\n\n"
		   "  sandlot exec 01k9 -- python3 -c 'print(1)'\n"
		   "  sandlot exec -t 10s -w /workspace 01k9 make test\n"
		   "  sandlot exec 01k9 -c 'ls | wc -l'\n"
		   "  sandlot exec -i 01k9 sort < names.txt\n",
	.tables = {{exec_spec_options, offsetof(struct exec_values, spec)}, {options, 0}},
	.values_size = sizeof(struct exec_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = 1,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
