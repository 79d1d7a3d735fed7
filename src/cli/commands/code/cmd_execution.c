/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution: what became of code that was run, also of that which `run-code -d` left running, and the files that it wrote:
 * those of an execution without a sandbox are nowhere else.
 */
#include "cli/command.h"
#include "cli/copy/transfer.h"
#include "cli/remote/query.h"
#include "cli/terminal/output/shown_result.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define EXECUTIONS "/v1/executions"
#define LIST_MAX   20

struct execution_values {
	struct option_number count;
	const char *function, *language, *sandbox, *status;
};

static const struct option options[] = {
	{OPTION_NUMBER, 'n', "lines", "N", "ls: so many of the last ones (20)",
		offsetof(struct execution_values, count)},
	{OPTION_TEXT, 0, "function", "NAME", "ls: only calls of this function",
		offsetof(struct execution_values, function)},
	{OPTION_CHOICE, 'l', "language", "NAME", "ls: only those in this language",
		offsetof(struct execution_values, language),
		.choices = "python javascript typescript java shell"},
	{OPTION_TEXT, 0, "sandbox", "ID", "ls: only those in this sandbox",
		offsetof(struct execution_values, sandbox)},
	{OPTION_CHOICE, 0, "status", "STATUS", "ls: only those with this status",
		offsetof(struct execution_values, status),
		.choices = "queued running succeeded failed timeout cancelled lost"},
	{OPTION_END},
};

/* The path of an execution, or of something of it. */
static char *path_of(const char *id, const char *rest)
{
	auto_(buf_fini) struct buf id_part = BUF_INIT(4096);

	query_escape(&id_part, id);
	return mem_printf(EXECUTIONS "/%.*s%s", (int)id_part.len, (const char *)id_part.data, rest);
}

static int ask(const struct command_call *call, const char *method, const char *rest, json_t **ret,
	struct err *err)
{
	auto_free char *path = path_of(call->argv[0], rest);
	struct client *client;
	int r = cli_connect(call->cli, &client, err);

	return r < 0 ? r
		     : client_json(client, &(struct client_call){.method = method, .path = path},
			       ret, err);
}

/* --- ls --- */

static void print_table(const json_t *executions)
{
	static const char *const heading[] = {
		"ID", "SANDBOX", "FUNCTION", "LANGUAGE", "STATUS", "AGE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *one;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)executions, i, one)
	{
		table_add(&table, "%s", cli_text(one, "id"));
		table_add(&table, "%s", cli_text(one, "sandbox_id"));
		table_add(&table, "%s", cli_text(one, "function"));
		table_add(&table, "%s", cli_text(one, "language"));
		table_add(&table, "%s", cli_text(one, "status"));
		table_add_age(&table, cli_text(one, "created_at"));
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	const struct execution_values *v = call->values;
	auto_(buf_fini) struct buf path = BUF_INIT(16384);
	json_auto_t *document = NULL;
	struct client *client;
	char count[24];
	int r;

	snprintf(count, sizeof(count), "%llu",
		(unsigned long long)(v->count.is_set ? v->count.value : LIST_MAX));
	buf_printf(&path, EXECUTIONS);
	query_add(&path, "limit", count);
	query_add(&path, "function", v->function);
	query_add(&path, "language", v->language);
	query_add(&path, "sandbox", v->sandbox);
	query_add(&path, "status", v->status);
	buf_append(&path, "", 1);
	r = cli_connect(call->cli, &client, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "GET", .path = (const char *)path.data},
			&document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(call->cli))
		cli_print_json(document);
	else
		print_table(json_object_get(document, "executions"));
	return 0;
}

/* --- show, wait, cancel, retry --- */

static int show(const struct command_call *call, struct err *err)
{
	json_auto_t *execution = NULL;
	int r = ask(call, "GET", "", &execution, err);

	if (r == 0)
		cli_print_json(execution);
	return r;
}

/* As run-code prints one that it waits for. */
static int print_end(const struct cli *cli, const json_t *execution)
{
	const json_t *result = json_object_get(execution, "result");

	if (cli_wants_json(cli)) {
		cli_print_json(execution);
	} else {
		cli_print("%s", cli_text(execution, "stdout"));
		cli_tell(cli_text(execution, "stderr"));
		if (strcmp(cli_text(execution, "status"), "succeeded") == 0) {
			auto_free char *text =
				cli_dump_json(result, JSON_INDENT(2) | JSON_ENCODE_ANY);

			cli_print("%s\n", text);
		}
		shown_result_report(execution);
	}
	return shown_result_exit_code(execution);
}

static int await_end(const struct command_call *call, struct err *err)
{
	for (;;) {
		json_auto_t *execution = NULL;
		int r = ask(call, "GET", "?wait_ms=60000", &execution, err);
		const char *status = r < 0 ? "" : cli_text(execution, "status");

		if (r < 0)
			return r;
		if (strcmp(status, "running") != 0 && strcmp(status, "queued") != 0)
			return print_end(call->cli, execution);
	}
}

static int cancel(const struct command_call *call, struct err *err)
{
	json_auto_t *execution = NULL;
	int r = ask(call, "POST", "/cancel", &execution, err);
	auto_free char *line = NULL;

	if (r < 0)
		return r;
	line = mem_printf("%s %s", call->argv[0], cli_text(execution, "status"));
	cli_print_answer(call->cli, execution, line);
	return 0;
}

static int retry(const struct command_call *call, struct err *err)
{
	json_auto_t *execution = NULL;
	int r = ask(call, "POST", "/retry", &execution, err);

	return r < 0 ? r : print_end(call->cli, execution);
}

/* --- get --- */

/* One of its files, under its own name here if no other is given. */
static int get(const struct command_call *call, struct err *err)
{
	auto_(buf_fini) struct buf name = BUF_INIT(65536);
	auto_free char *rest = NULL, *path = NULL;
	struct client *client;
	int r = cli_connect(call->cli, &client, err);

	if (r < 0)
		return r;
	query_escape(&name, call->argv[1]);
	rest = mem_printf("/artifacts/%.*s", (int)name.len, (const char *)name.data);
	path = path_of(call->argv[0], rest);
	return transfer_receive(
		client, path, call->argv[1], false, call->argc > 2 ? call->argv[2] : ".", err);
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"cancel", "ID", 1, 1, cancel},
	{"get", "ID PATH [FILE]", 2, 3, get},
	{"ls", "", 0, 0, list},
	{"retry", "ID", 1, 1, retry},
	{"show", "ID", 1, 1, show},
	{"wait", "ID", 1, 1, await_end},
	{0},
};

const struct command cmd_execution = {
	.name = "execution",
	.operands = "ls|show|wait|get|cancel|retry [ID] [PATH] [FILE]",
	.summary = "list, wait for and cancel code that was run, and get its files",
	.details = "run-code -d prints the id of an execution. wait prints what it printed and\n"
		   "its result, and ends as run-code does; get writes a file of its outputs to\n"
		   "FILE here, or into that directory (-: standard output), also of one whose\n"
		   "sandbox is gone; retry runs it again.\n\n"
		   "  sandlot execution ls --status failed\n"
		   "  sandlot execution wait 01k9x3c8d0p5w6v7q2t4r1h9ms\n"
		   "  sandlot execution get 01k9x3c8d0p5w6v7q2t4r1h9ms report.txt\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct execution_values),
	.min_operands = 1,
	.max_operands = 4,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.verbs = verbs,
};
