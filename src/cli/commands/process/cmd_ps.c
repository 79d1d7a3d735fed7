/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/process_ref.h"
#include "cli/remote/listing.h"
#include "cli/text/table.h"

#include <inttypes.h>
#include <string.h>

#define COMMAND_MAX 80 /* bytes of a command line that are shown */

struct ps_values {
	bool all;
	const char *member;
	bool quiet;
};

static const struct option options[] = {
	{OPTION_FLAG, 'a', "all", NULL, "also those that have ended, as far as they are kept",
		offsetof(struct ps_values, all)},
	OPTION_MEMBER(offsetof(struct ps_values, member)),
	{OPTION_FLAG, 'q', "quiet", NULL, "print the names and nothing else",
		offsetof(struct ps_values, quiet)},
	{OPTION_END},
};

static json_int_t survivors(const json_t *process)
{
	return json_integer_value(json_object_get(process, "survivors"));
}

static bool is_alive(const json_t *process)
{
	return strcmp(cli_text(process, "status"), "running") == 0 || survivors(process) > 0;
}

static void add_status(struct table *table, const json_t *process)
{
	const char *status = cli_text(process, "status");

	if (survivors(process) > 0 && strcmp(status, "exited") == 0)
		table_add(table, "%s, %" JSON_INTEGER_FORMAT " left", status, survivors(process));
	else
		table_add(table, "%s", status);
}

static void add_exit(struct table *table, const json_t *process)
{
	const json_t *termination = json_object_get(process, "termination");
	const char *signal = cli_text(termination, "signal");
	const char *reason = cli_text(termination, "reason");
	const json_t *code = json_object_get(process, "exit_code");

	if (strcmp(reason, "exited") != 0 && strcmp(reason, "signal") != 0 && reason[0])
		table_add(table, "%s", reason);
	else if (signal[0])
		table_add(table, "%s", signal);
	else
		table_add_number(table, code);
}

/* What was asked for: the line, or the words; of a start command also its name. Cut where a character begins. */
static void add_command(struct table *table, const json_t *process)
{
	auto_(buf_fini) struct buf line = BUF_INIT(1024u * 1024);
	auto_free char *text = NULL;
	const json_t *word;
	const char *start = cli_text(process, "start");
	size_t len;
	size_t i;

	if (start[0])
		buf_printf(&line, "[%s] ", start);
	buf_append_str(&line, cli_text(process, "command"));
	if (line.len == 0) {
		json_array_foreach(json_object_get(process, "argv"), i, word)
		{
			buf_append_str(&line, i > 0 ? " " : "");
			buf_append_str(&line, json_is_string(word) ? json_string_value(word) : "");
		}
	}
	text = buf_take_str(&line);
	len = strlen(text);
	if (len <= COMMAND_MAX) {
		table_add(table, "%s", text);
		return;
	}
	for (len = COMMAND_MAX; len > 0 && (text[len] & 0xc0) == 0x80; len--)
		continue;
	table_add(table, "%.*s...", (int)len, text);
}

static void print_table(const json_t *processes)
{
	static const char *const heading[] = {"PROCESS", "PID", "STATUS", "AGE", "EXIT", "COMMAND"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *process;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(processes, i, process)
	{
		table_add(&table, "%s", cli_text(process, "id"));
		table_add_number(&table, json_object_get(process, "pid"));
		add_status(&table, process);
		table_add_age(&table, cli_text(process, "started_at"));
		add_exit(&table, process);
		add_command(&table, process);
	}
	table_print(&table, stdout);
}

/* Made to be passed on to other commands, so nothing but names. */
static void print_names(const json_t *processes)
{
	const json_t *process;
	size_t i;

	json_array_foreach(processes, i, process)
	{
		if (process_ref_is_name(cli_text(process, "id")))
			puts(cli_text(process, "id"));
	}
}

static int fetch(
	struct client *client, const char *sandbox, bool all, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/processes?limit=1000", sandbox);
	json_auto_t *processes = NULL;
	json_auto_t *kept = json_array();
	json_t *process;
	size_t i;
	int r = listing_fetch_all(client, path, "processes", &processes, err);

	if (r < 0)
		return r;
	json_array_foreach(processes, i, process)
	{
		if (all || is_alive(process))
			json_array_append(kept, process);
	}
	*ret = json_incref(kept);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct ps_values *v = values;
	char sandbox[RESOLVE_ID_LEN + 1];
	json_auto_t *processes = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		client_mean_member(client, v->member);
	if (r == 0)
		r = resolve_id(client, argv[0], sandbox, err);
	if (r == 0)
		r = fetch(client, sandbox, v->all, &processes, err);
	if (r < 0)
		return r;
	if (v->quiet) {
		print_names(processes);
	} else if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "processes", processes);

		cli_print_json(document);
	} else {
		print_table(processes);
	}
	return 0;
}

const struct command cmd_ps = {
	.name = "ps",
	.operands = "SANDBOX",
	.summary = "list the processes of a sandbox",
	.details = "Those that run, and those that have ended but left others running. Never wakes "
		   "a\n"
		   "stopped sandbox.\n\n"
		   "  sandlot ps -a 01k9\n"
		   "  sandlot ps --member database 01k9\n"
		   "  sandlot ps -o json 01k9 | jq '.processes[].pid'\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct ps_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
