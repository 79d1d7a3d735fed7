/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/human.h"
#include "cli/listing.h"
#include "cli/resolve.h"
#include "cli/table.h"

struct ls_values {
	struct listing_filter filter;
	bool quiet;
};

static const struct option options[] = {
	{OPTION_TEXT, 'l', "label", "K=V", "only those with this label",
		offsetof(struct ls_values, filter.label)},
	{OPTION_TEXT, 0, "project", "NAME", "only those of this project",
		offsetof(struct ls_values, filter.project)},
	{OPTION_FLAG, 'q', "quiet", NULL, "print the ids and nothing else",
		offsetof(struct ls_values, quiet)},
	{OPTION_CHOICE, 's', "status", "STATUS", "only those in this state",
		offsetof(struct ls_values, filter.status), "creating running paused stopped error"},
	{OPTION_END},
};

static void add_size(struct table *table, const json_t *size)
{
	char text[HUMAN_LEN];

	if (json_is_integer(size)) {
		human_bytes((uint64_t)json_integer_value(size), text);
		table_add(table, "%s", text);
	} else {
		table_add(table, "%s", json_is_string(size) ? json_string_value(size) : "");
	}
}

static void add_age(struct table *table, const char *created_at)
{
	char text[HUMAN_LEN] = "";
	int64_t created_ms;

	if (human_parse_time(created_at, &created_ms) == 0)
		human_age(clock_wall_ms() - created_ms, text);
	table_add(table, "%s", text);
}

static void add_labels(struct table *table, json_t *labels)
{
	auto_(buf_fini) struct buf text = BUF_INIT(65536);
	auto_free char *joined = NULL;
	const char *name;
	json_t *value;

	json_object_foreach(labels, name, value)
	{
		buf_printf(&text, "%s%s=%s", text.len ? "," : "", name,
			json_is_string(value) ? json_string_value(value) : "");
	}
	joined = buf_take_str(&text);
	table_add(table, "%s", joined);
}

static void add_sandbox(struct table *table, const json_t *sandbox)
{
	const json_t *resources = json_object_get(sandbox, "resources");

	table_add(table, "%s", cli_text(sandbox, "id"));
	table_add(table, "%s", cli_text(sandbox, "status"));
	table_add(table, "%s", cli_text(sandbox, "template"));
	table_add(table, "%g", json_number_value(json_object_get(resources, "cpu")));
	add_size(table, json_object_get(resources, "memory"));
	add_age(table, cli_text(sandbox, "created_at"));
	add_labels(table, json_object_get(sandbox, "labels"));
}

static void print_table(const json_t *sandboxes)
{
	static const char *const heading[] = {
		"ID", "STATUS", "TEMPLATE", "CPU", "MEMORY", "AGE", "LABELS"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *sandbox;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(sandboxes, i, sandbox) add_sandbox(&table, sandbox);
	table_print(&table, stdout);
}

/* Made to be passed on to other commands, so nothing but ids. */
static void print_ids(const json_t *sandboxes)
{
	const json_t *sandbox;
	size_t i;

	json_array_foreach(sandboxes, i, sandbox)
	{
		if (resolve_is_whole(cli_text(sandbox, "id")))
			puts(cli_text(sandbox, "id"));
	}
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct ls_values *v = values;
	json_auto_t *sandboxes = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc, (void)argv;
	if (r == 0)
		r = listing_fetch(client, &v->filter, &sandboxes, err);
	if (r < 0)
		return r;
	if (v->quiet) {
		print_ids(sandboxes);
	} else if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "sandboxes", sandboxes);

		cli_print_json(document);
	} else {
		print_table(sandboxes);
	}
	return 0;
}

const struct command cmd_ls = {
	.name = "ls",
	.operands = "",
	.summary = "list sandboxes",
	.details = "  sandlot ls --status running\n"
		   "  sandlot ls -o json | jq -r '.sandboxes[].id'\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct ls_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
