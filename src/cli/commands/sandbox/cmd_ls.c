/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/orphan_ids.h"
#include "cli/remote/listing.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/output/refresh.h"
#include "cli/text/table.h"

struct ls_values {
	struct listing_filter filter;
	bool quiet;
	bool names;
	bool orphans;
	bool removed;
	bool watch;
};

static const struct option options[] = {
	{OPTION_TEXT, 'l', "label", "K=V", "only those with this label",
		offsetof(struct ls_values, filter.label)},
	{OPTION_FLAG, 0, "names", NULL, "with -q: also the names of those that have one",
		offsetof(struct ls_values, names)},
	{OPTION_FLAG, 0, "orphans", NULL,
		"those that have files, but no row in the daemon's database; for administrators",
		offsetof(struct ls_values, orphans)},
	{OPTION_TEXT, 0, "project", "NAME", "only those of this project",
		offsetof(struct ls_values, filter.project)},
	{OPTION_FLAG, 'q', "quiet", NULL, "print the ids and nothing else",
		offsetof(struct ls_values, quiet)},
	{OPTION_FLAG, 0, "removed", NULL, "what removed sandboxes left: their workspaces",
		offsetof(struct ls_values, removed)},
	{OPTION_CHOICE, 's', "status", "STATUS", "only those in this state",
		offsetof(struct ls_values, filter.status), "creating running paused stopped error"},
	{OPTION_FLAG, 'w', "watch", NULL, "show them again every two seconds",
		offsetof(struct ls_values, watch)},
	{OPTION_END},
};

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

/* "3000,8080"; a port that anyone may see has a star. */
static void add_ports(struct table *table, const json_t *ports)
{
	auto_(buf_fini) struct buf text = BUF_INIT(4096);
	auto_free char *joined = NULL;
	const json_t *port;
	size_t i;

	json_array_foreach((json_t *)ports, i, port)
	{
		const json_t *number = json_is_object(port) ? json_object_get(port, "port") : port;

		buf_printf(&text, "%s%d%s", text.len ? "," : "", (int)json_integer_value(number),
			json_is_true(json_object_get(port, "public")) ? "*" : "");
	}
	joined = buf_take_str(&text);
	table_add(table, "%s", joined);
}

/* "running", or of several "web:running,db:waiting"; what a stopped sandbox would run is not told. */
static void add_start(struct table *table, const json_t *start)
{
	auto_(buf_fini) struct buf text = BUF_INIT(16384);
	auto_free char *joined = NULL;
	const json_t *command;
	size_t i;

	json_array_foreach((json_t *)start, i, command)
	{
		if (!cli_text(command, "status")[0])
			continue;
		buf_printf(&text, "%s%s%s%s", text.len ? "," : "",
			json_array_size(start) > 1 ? cli_text(command, "name") : "",
			json_array_size(start) > 1 ? ":" : "", cli_text(command, "status"));
	}
	joined = buf_take_str(&text);
	table_add(table, "%s", joined);
}

static void add_limits(struct table *table, const json_t *sandbox)
{
	const json_t *resources = json_object_get(sandbox, "resources");

	if (listing_limit_holds(sandbox, "cpu"))
		table_add(table, "%g", json_number_value(json_object_get(resources, "cpu")));
	else
		table_add(table, "%s", "");
	table_add_size(table, listing_limit_holds(sandbox, "memory")
				      ? json_object_get(resources, "memory")
				      : NULL);
}

static const char *project_of(const json_t *sandbox)
{
	return cli_text(json_object_get(sandbox, "owner"), "project");
}

static bool has_project(const json_t *sandboxes)
{
	const json_t *sandbox;
	size_t i;

	json_array_foreach(sandboxes, i, sandbox)
	{
		if (project_of(sandbox)[0])
			return true;
	}
	return false;
}

static void add_sandbox(struct table *table, const json_t *sandbox, bool with_project)
{
	table_add(table, "%s", cli_text(sandbox, "id"));
	table_add(table, "%s", cli_text(sandbox, "name"));
	if (with_project)
		table_add(table, "%s", project_of(sandbox));
	table_add(table, "%s", cli_text(sandbox, "status"));
	table_add(table, "%s", cli_text(sandbox, "template"));
	add_limits(table, sandbox);
	add_ports(table, json_object_get(sandbox, "ports"));
	add_start(table, json_object_get(sandbox, "start"));
	table_add_age(table, cli_text(sandbox, "created_at"));
	add_labels(table, json_object_get(sandbox, "labels"));
}

/* Most people have no projects, and a terminal has few columns. */
static void print_table(const json_t *sandboxes)
{
	static const char *const plain[] = {"ID", "NAME", "STATUS", "TEMPLATE", "CPU", "MEMORY",
		"PORTS", "START", "AGE", "LABELS"};
	static const char *const projects[] = {"ID", "NAME", "PROJECT", "STATUS", "TEMPLATE", "CPU",
		"MEMORY", "PORTS", "START", "AGE", "LABELS"};
	bool with_project = has_project(sandboxes);
	auto_(table_fini) struct table table =
		TABLE_INIT(with_project ? array_len(projects) : array_len(plain));
	const json_t *sandbox;
	size_t i;

	table_add_row(&table, with_project ? projects : plain);
	json_array_foreach(sandboxes, i, sandbox) add_sandbox(&table, sandbox, with_project);
	table_print(&table, stdout);
}

/* Made to be passed on to other commands, so nothing but what stands for one sandbox. */
static void print_ids(const json_t *sandboxes, bool with_names)
{
	const json_t *sandbox;
	size_t i;

	json_array_foreach(sandboxes, i, sandbox)
	{
		if (resolve_is_whole(cli_text(sandbox, "id")))
			puts(cli_text(sandbox, "id"));
		if (with_names && cli_text(sandbox, "name")[0])
			puts(cli_text(sandbox, "name"));
	}
}

static void print_orphans(const json_t *orphans)
{
	static const char *const heading[] = {"ORPHAN", "KIND", "LOCATION"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *orphan;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(orphans, i, orphan)
	{
		table_add(&table, "%s", cli_text(orphan, "id"));
		table_add(&table, "%s", cli_text(orphan, "kind"));
		table_add(&table, "%s", cli_text(orphan, "location"));
	}
	table_print(&table, stdout);
}

static void print_removed(const json_t *removed)
{
	static const char *const heading[] = {"REMOVED", "NAME", "QUOTA", "AGE", "SINCE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *left;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(removed, i, left)
	{
		table_add(&table, "%s", cli_text(left, "id"));
		table_add(&table, "%s", cli_text(left, "name"));
		table_add_size(&table, json_object_get(left, "disk_bytes"));
		table_add_age(&table, cli_text(left, "created_at"));
		table_add_age(&table, cli_text(left, "removed_at"));
	}
	table_print(&table, stdout);
}

/* What is listed, in the JSON and in the table. */
static const char *kind_of(const struct ls_values *v)
{
	return v->orphans ? "orphans" : "sandboxes";
}

static int fetch(struct client *client, const struct ls_values *v, json_t **ret, struct err *err)
{
	const struct listing_filter *filter = &v->filter;

	if (!v->orphans && !v->removed)
		return listing_fetch(client, filter, ret, err);
	if (v->orphans && v->removed)
		return err_set(err, ERR_INVALID, "--orphans does not go with --removed");
	if (filter->label || filter->project || filter->status)
		return err_set(err, ERR_INVALID,
			"no filter goes with --orphans and --removed: little is known of those");
	return v->orphans ? orphan_ids_fetch(client, ret, err)
			  : listing_fetch_removed(client, ret, err);
}

struct showing {
	struct cli *cli;
	struct client *client;
	const struct ls_values *values;
};

static int show(void *arg, struct err *err)
{
	const struct showing *showing = arg;
	const struct ls_values *v = showing->values;
	json_auto_t *sandboxes = NULL;
	int r = fetch(showing->client, v, &sandboxes, err);

	if (r < 0)
		return r;
	if (v->quiet) {
		print_ids(sandboxes, v->names);
	} else if (cli_wants_json(showing->cli)) {
		json_auto_t *document = json_pack("{s:O}", kind_of(v), sandboxes);

		cli_print_json(document);
	} else if (v->orphans) {
		print_orphans(sandboxes);
	} else if (v->removed) {
		print_removed(sandboxes);
	} else {
		print_table(sandboxes);
	}
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct showing showing = {.cli = cli, .values = values};
	int r = cli_connect(cli, &showing.client, err);

	(void)argc, (void)argv;
	if (r < 0)
		return r;
	return showing.values->watch ? refresh_run(showing.client, show, &showing, err)
				     : show(&showing, err);
}

const struct command cmd_ls = {
	.name = "ls",
	.alias = "list",
	.operands = "",
	.summary = "list sandboxes",
	.details =
		"A port with a star may be seen by anyone. Limits that are not in force are not "
		"shown. PROJECT is there if one of them has a project. QUOTA of --removed is how "
		"much of its owner's\nquota of disk a workspace counts.\n\n"
		"  sandlot ls --status running\n"
		"  sandlot ls -w\n"
		"  sandlot ls -o json | jq -r '.sandboxes[].id'\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct ls_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
