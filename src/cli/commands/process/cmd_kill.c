/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"
#include "cli/command.h"
#include "cli/process_ref.h"

#include <stdio.h>

#define SIGNAL_MAX 64

struct kill_values {
	const char *signal;
	bool main_only;
	const char *member;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "main-only", NULL, "only the process itself, not what it started",
		offsetof(struct kill_values, main_only)},
	OPTION_MEMBER(offsetof(struct kill_values, member)),
	{OPTION_TEXT, 's', "signal", "SIGNAL", "send this instead (INT, SIGTERM, 9); do not wait",
		offsetof(struct kill_values, signal)},
	{OPTION_END},
};

static json_t *signal_body(const struct kill_values *v)
{
	json_t *body = json_object();
	uint64_t number;

	if (number_parse(v->signal, 1, SIGNAL_MAX, &number) == 0)
		json_object_set_new(body, "signal", json_integer((json_int_t)number));
	else
		json_object_set_new(body, "signal", json_string(v->signal));
	if (v->main_only)
		json_object_set_new(body, "kill_tree", json_false());
	return body;
}

static int kill_one(struct client *client, const struct kill_values *v,
	const struct process_ref *ref, struct err *err)
{
	json_auto_t *body = v->signal ? signal_body(v) : NULL;

	if (body)
		return process_ref_ask(client, ref, "POST", "/signal", body, NULL, err);
	return process_ref_ask(client, ref, "DELETE",
		v->main_only ? "?kill_tree=false" : "?kill_tree=true", NULL, NULL, err);
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct kill_values *v = values;
	struct client *client;
	int code = 0;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	client_mean_member(client, v->member);
	for (int i = 1; i < argc; i++) {
		struct process_ref ref;

		r = process_ref_find(client, argv[0], argv[i], &ref, err);
		if (r == 0)
			r = kill_one(client, v, &ref, err);
		if (r < 0) {
			cli_complain(err, argv[i]);
			code = cli_exit_code(err);
		} else {
			puts(argv[i]);
		}
	}
	return code;
}

const struct command cmd_kill = {
	.name = "kill",
	.operands = "SANDBOX PROCESS...",
	.summary = "end processes of a sandbox, or send them a signal",
	.details = "Without -s: SIGKILL to the process and all that it started; waits until it has "
		   "ended\n"
		   "and prints its name. With -s the signal goes to the process alone, but for "
		   "SIGKILL.\n\n"
		   "  sandlot kill 01k9 p7\n"
		   "  sandlot kill -s INT 01k9 p7\n"
		   "  sandlot kill 01k9 $(sandlot ps -q 01k9)\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct kill_values),
	.min_operands = 2,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
