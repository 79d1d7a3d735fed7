/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/human.h"
#include "cli/listing.h"
#include "cli/resolve.h"
#include "cli/table.h"

#include <string.h>

static const char *const heading[] = {
	"ID", "CPU-TIME", "CPUS", "MEMORY", "PEAK", "LIMIT", "DISK", "LIMIT", "PIDS", "LIMIT"};

static int fetch(struct client *client, const char *id, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/stats", id);

	return client_json(client, &(struct client_call){.method = "GET", .path = path}, ret, err);
}

static const json_t *figure(const json_t *stats, const char *group, const char *name)
{
	return json_object_get(json_object_get(stats, group), name);
}

static void add_bytes(struct table *table, const json_t *value)
{
	char text[HUMAN_LEN] = "";

	if (json_is_number(value))
		human_bytes((uint64_t)json_number_value(value), text);
	table_add(table, "%s", text);
}

static void add_number(struct table *table, const json_t *value)
{
	if (json_is_number(value))
		table_add(table, "%.15g", json_number_value(value));
	else
		table_add(table, "%s", "");
}

static void add_stats(struct table *table, const char *id, const json_t *stats)
{
	const json_t *usage_ms = figure(stats, "cpu", "usage_ms");

	table_add(table, "%s", id);
	if (json_is_number(usage_ms))
		table_add(table, "%.2fs", json_number_value(usage_ms) / 1000);
	else
		table_add(table, "%s", "");
	add_number(table, figure(stats, "cpu", "limit"));
	add_bytes(table, figure(stats, "memory", "current_bytes"));
	add_bytes(table, figure(stats, "memory", "peak_bytes"));
	add_bytes(table, figure(stats, "memory", "limit_bytes"));
	add_bytes(table, figure(stats, "disk", "used_bytes"));
	add_bytes(table, figure(stats, "disk", "limit_bytes"));
	add_number(table, figure(stats, "pids", "current"));
	add_number(table, figure(stats, "pids", "limit"));
}

/* The ids to show: those given, or all that run. */
static int choose(struct client *client, int argc, char **argv, json_t **ret_ids, struct err *err)
{
	json_auto_t *ids = json_array();
	json_auto_t *running = NULL;
	const json_t *sandbox;
	size_t i;
	int r;

	for (int a = 0; a < argc; a++) {
		char id[RESOLVE_ID_LEN + 1];

		r = resolve_id(client, argv[a], id, err);
		if (r < 0)
			return r;
		json_array_append_new(ids, json_string(id));
	}
	if (argc == 0) {
		struct listing_filter filter = {.status = "running"};

		r = listing_fetch(client, &filter, &running, err);
		if (r < 0)
			return r;
	}
	json_array_foreach(running, i, sandbox)
	{
		json_t *id = json_object_get(sandbox, "id");

		if (json_is_string(id) && resolve_is_whole(json_string_value(id)))
			json_array_append(ids, id);
	}
	*ret_ids = json_incref(ids);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	json_auto_t *all = json_object();
	json_auto_t *ids = NULL;
	struct client *client;
	const json_t *id;
	size_t i;
	int r = cli_connect(cli, &client, err);

	(void)values;
	if (r == 0)
		r = choose(client, argc, argv, &ids, err);
	if (r < 0)
		return r;
	table_add_row(&table, heading);
	json_array_foreach(ids, i, id)
	{
		json_auto_t *stats = NULL;

		r = fetch(client, json_string_value(id), &stats, err);
		/* One that ended between the list and now is no failure. */
		if (r < 0 && argc == 0 && err->kind == ERR_NOT_FOUND)
			continue;
		if (r < 0)
			return r;
		add_stats(&table, json_string_value(id), stats);
		json_object_set(all, json_string_value(id), stats);
	}
	if (cli_wants_json(cli))
		cli_print_json(all);
	else
		table_print(&table, stdout);
	return 0;
}

const struct command cmd_stats = {
	.name = "stats",
	.operands = "[ID...]",
	.summary = "show what sandboxes use",
	.details = "Without an id, all that run. JSON is an object with the id as key.\n",
	.min_operands = 0,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
