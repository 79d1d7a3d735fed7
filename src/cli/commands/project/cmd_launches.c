/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/query.h"
#include "cli/text/since.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define TARGET_MAX 2048

struct launches_values {
	const char *project, *status, *failed_stage, *since;
	bool lines, stats;
};

#define AT(member) offsetof(struct launches_values, member)

static const struct option options[] = {
	{OPTION_TEXT, 0, "project", "NAME", "only those of this project", AT(project)},
	{OPTION_CHOICE, 0, "status", "STATUS", "only those with this status", AT(status),
		.choices = "running succeeded failed cancelled"},
	{OPTION_TEXT, 0, "failed-stage", "STAGE", "only those that failed in this stage",
		AT(failed_stage)},
	{OPTION_TEXT, 0, "since", "TIME",
		"only those of the last 7d (say), or since 2026-01-02T03:04:05Z", AT(since)},
	{OPTION_FLAG, 0, "lines", NULL, "each whole as a line of JSON, to be kept elsewhere",
		AT(lines)},
	{OPTION_FLAG, 0, "stats", NULL, "how they went together, stage by stage", AT(stats)},
	{OPTION_END},
};

/* What a launch's project is called; its id, if that is gone. */
static const char *project_name(const json_t *projects, const json_t *launch)
{
	const char *id = cli_text(launch, "project");
	const json_t *project;
	size_t i;

	json_array_foreach((json_t *)projects, i, project)
	{
		if (strcmp(cli_text(project, "id"), id) == 0)
			return cli_text(project, "name");
	}
	return id;
}

static void print_table(const json_t *launches, const json_t *projects)
{
	static const char *const heading[] = {
		"ID", "PROJECT", "SANDBOX", "STATUS", "FAILED IN", "CAUSE", "AGE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *launch;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)launches, i, launch)
	{
		const json_t *error = json_object_get(launch, "error");

		table_add(&table, "%s", cli_text(launch, "id"));
		table_add(&table, "%s", project_name(projects, launch));
		table_add(&table, "%s", cli_text(launch, "sandbox_id"));
		table_add(&table, "%s", cli_text(launch, "status"));
		table_add(&table, "%s", cli_text(error, "stage"));
		table_add(&table, "%s", cli_text(error, "code"));
		table_add_age(&table, cli_text(launch, "created_at"));
	}
	table_print(&table, stdout);
}

static void print_lines(const json_t *launches)
{
	const json_t *launch;
	size_t i;

	json_array_foreach((json_t *)launches, i, launch)
	{
		auto_free char *line = json_dumps(launch, JSON_COMPACT);

		if (!line)
			abort();
		puts(line);
	}
}

/* Milliseconds as seconds, or nothing. */
static void add_seconds(struct table *table, const json_t *stage, const char *name)
{
	const json_t *value = json_object_get(stage, name);

	if (json_is_number(value))
		table_add(table, "%.1f", json_number_value(value) / 1000);
	else
		table_add(table, "%s", "");
}

static void print_stats(const json_t *stats)
{
	static const char *const heading[] = {"STAGE", "COMPLETED", "FAILED", "P50 S", "P95 S"};
	static const char *const counts[] = {
		"launches", "succeeded", "failed", "cancelled", "running"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *stage, *count;
	const char *cause;
	size_t i;

	for (i = 0; i < array_len(counts); i++)
		cli_print("%s%lld %s", i ? ", " : "",
			(long long)json_integer_value(json_object_get(stats, counts[i])),
			counts[i]);
	cli_print("\n");
	table_add_row(&table, heading);
	json_array_foreach(json_object_get(stats, "stages"), i, stage)
	{
		table_add(&table, "%s", cli_text(stage, "stage"));
		table_add(&table, "%lld",
			(long long)json_integer_value(json_object_get(stage, "completed")));
		table_add(&table, "%lld",
			(long long)json_integer_value(json_object_get(stage, "failed")));
		add_seconds(&table, stage, "p50_ms");
		add_seconds(&table, stage, "p95_ms");
	}
	table_print(&table, stdout);
	json_object_foreach(json_object_get(stats, "causes"), cause, count)
		cli_print("%s: %lld\n", cause, (long long)json_integer_value(count));
}

static int make_target(
	const struct launches_values *v, const char *path, struct buf *target, struct err *err)
{
	char since[CLOCK_TEXT_LEN];
	int64_t since_ms;
	int r = v->since ? since_parse(v->since, &since_ms, err) : 0;

	if (r < 0)
		return r;
	buf_append_str(target, path);
	query_add(target, "project", v->project);
	if (v->since) {
		clock_format(since_ms, since);
		query_add(target, "since", since);
	}
	if (!v->stats) {
		query_add(target, "status", v->status);
		query_add(target, "failed_stage", v->failed_stage);
	}
	return 0;
}

static int show_stats(struct cli *cli, struct client *client, const char *target, struct err *err)
{
	json_auto_t *stats = NULL;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = target}, &stats, err);

	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(stats);
	else
		print_stats(stats);
	return 0;
}

static int show_list(struct cli *cli, struct client *client, const struct launches_values *v,
	const char *target, struct err *err)
{
	json_auto_t *launches = NULL, *projects = NULL;
	int r = listing_fetch_all(client, target, "launches", &launches, err);

	if (r == 0 && !v->lines && !cli_wants_json(cli))
		r = listing_fetch_all(client, "/v1/projects", "projects", &projects, err);
	if (r < 0)
		return r;
	if (v->lines) {
		print_lines(launches);
	} else if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "launches", launches);

		cli_print_json(document);
	} else {
		print_table(launches, projects);
	}
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct launches_values *v = values;
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	auto_free char *path = NULL;
	struct client *client;
	int r;

	(void)argc;
	(void)argv;
	if (v->stats && (v->lines || v->status || v->failed_stage))
		return err_set(err, ERR_INVALID,
			"--stats goes with --project and --since, not with the others");
	r = make_target(v, v->stats ? "/v1/launches/stats" : "/v1/launches", &target, err);
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r < 0)
		return r;
	path = mem_printf("%.*s", (int)target.len, (const char *)target.data);
	return v->stats ? show_stats(cli, client, path, err) : show_list(cli, client, v, path, err);
}

const struct command cmd_launches = {
	.name = "launches",
	.operands = "",
	.summary = "show how launches went",
	.details = "The newest 1000 of yours are kept, with their stages and times.\n\n"
		   "  sandlot launches --since 7d --status failed\n"
		   "  sandlot launches --stats --project my-app\n"
		   "  sandlot launches --lines > launches.jsonl\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct launches_values),
	.verbatim_after = OPTION_ANYWHERE,
	.run = run,
};
