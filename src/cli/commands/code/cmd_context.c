/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/remote/context_ref.h"
#include "cli/remote/listing.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

#include <string.h>

struct context_values {
	const char *language, *cwd;
	struct option_list env;
	struct option_number idle;
	bool quiet;
};

static const struct option options[] = {
	{OPTION_LIST, 'e', "env", "K=V", "create: set an environment variable; may be repeated",
		offsetof(struct context_values, env)},
	{OPTION_SECONDS, 0, "idle-timeout", "TIME", "create: end it after so long without use: 30m",
		offsetof(struct context_values, idle)},
	{OPTION_CHOICE, 'l', "language", "NAME", "create: what it runs; python",
		offsetof(struct context_values, language),
		.choices = "python javascript typescript"},
	{OPTION_FLAG, 'q', "quiet", NULL, "ls: only ids", offsetof(struct context_values, quiet)},
	{OPTION_TEXT, 'w', "workdir", "DIR", "create: where it begins",
		offsetof(struct context_values, cwd)},
	{OPTION_END},
};

static int make_body(const struct context_values *v, json_t **ret_body, struct err *err)
{
	json_auto_t *body = json_pack("{s:s}", "language", v->language ? v->language : "python");
	json_t *pairs;
	int r;

	if (v->cwd && json_object_set_new(body, "cwd", json_string(v->cwd)) < 0)
		return err_set(err, ERR_INVALID, "--workdir is not UTF-8 text");
	if (v->idle.is_set)
		json_object_set_new(
			body, "idle_timeout_s", json_integer((json_int_t)v->idle.value / 1000));
	if (v->env.count > 0) {
		r = create_spec_pairs(&v->env, "--env", &pairs, err);
		if (r < 0)
			return r;
		json_object_set_new(body, "env", pairs);
	}
	*ret_body = json_incref(body);
	return 0;
}

static int create(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct context_values *v = call->values;
	const char *sandbox = call->argv[0];
	json_auto_t *body = NULL, *answer = NULL;
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	struct client *client;
	int r = make_body(v, &body, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = resolve_id(client, sandbox, id, err);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/contexts", id);
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	cli_print_answer(cli, answer, cli_text(answer, "id"));
	return 0;
}

static void print_table(const json_t *contexts)
{
	static const char *const heading[] = {
		"ID", "LANGUAGE", "STATUS", "STATE", "USED", "REASON"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *one;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)contexts, i, one)
	{
		table_add(&table, "%s", cli_text(one, "id"));
		table_add(&table, "%s", cli_text(one, "language"));
		table_add(&table, "%s", cli_text(one, "status"));
		table_add(&table, "%s", cli_text(one, "state"));
		table_add_age(&table, cli_text(one, "used_at"));
		table_add(&table, "%s", cli_text(one, "reason"));
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct context_values *v = call->values;
	const char *sandbox = call->argv[0];
	json_auto_t *answer = NULL;
	const json_t *contexts, *one;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	size_t i;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = resolve_id(client, sandbox, id, err);
	if (r == 0)
		r = context_ref_list(client, id, &answer, err);
	if (r < 0)
		return r;
	contexts = json_object_get(answer, "contexts");
	if (cli_wants_json(cli)) {
		cli_print_json(contexts);
	} else if (v->quiet) {
		json_array_foreach((json_t *)contexts, i, one)
			cli_print("%s\n", cli_text(one, "id"));
	} else {
		print_table(contexts);
	}
	return 0;
}

static int act(
	const struct command_call *call, const char *method, const char *ending, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1], context[RESOLVE_ID_LEN + 1];
	json_auto_t *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(call->cli, &client, err);

	if (r == 0)
		r = resolve_id(client, call->argv[0], id, err);
	if (r == 0)
		r = context_ref_find(client, id, call->argv[1], context, err);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/contexts/%s%s", id, context, ending);
	r = client_json(client, &(struct client_call){.method = method, .path = path},
		ending[0] ? &answer : NULL, err);
	if (r < 0)
		return r;
	if (cli_wants_json(call->cli) && answer)
		cli_print_json(answer);
	else if (answer)
		cli_print("%s %s, state %s\n", context, cli_text(answer, "status"),
			cli_text(answer, "state"));
	else
		cli_print("%s\n", context);
	return 0;
}

static int remove_one(const struct command_call *call, struct err *err)
{
	return act(call, "DELETE", "", err);
}

static int interrupt(const struct command_call *call, struct err *err)
{
	return act(call, "POST", "/interrupt", err);
}

static int restart(const struct command_call *call, struct err *err)
{
	return act(call, "POST", "/restart", err);
}

static const struct command_verb verbs[] = {
	{"create", "ID", 1, 1, create},
	{"ls", "ID", 1, 1, list},
	{"rm", "ID CONTEXT", 2, 2, remove_one},
	{"interrupt", "ID CONTEXT", 2, 2, interrupt},
	{"restart", "ID CONTEXT", 2, 2, restart},
	{0},
};

const struct command cmd_context = {
	.name = "context",
	.operands = "create|ls|rm|interrupt|restart ID [CONTEXT]",
	.summary = "interpreters in a sandbox that keep their state",
	.details = "A context is an interpreter that keeps what code defines in it. Run code there "
		   "with\n"
		   "run-code --context, or line by line with repl. interrupt ends what runs and "
		   "keeps the\n"
		   "state, if the code lets it; restart begins with an empty one.\n\n"
		   "  sandlot context create 01k9 -l python\n"
		   "  sandlot context ls 01k9\n"
		   "  sandlot run-code --context 01k9ctx step.py 01k9\n"
		   "  sandlot context interrupt 01k9 01k9ctx\n"
		   "  sandlot context rm 01k9 01k9ctx\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct context_values),
	.min_operands = 2,
	.max_operands = 3,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.verbs = verbs,
};
