/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/output/refresh.h"
#include "cli/text/since.h"
#include "cli/text/table.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_MS 500
#define HOUR_MS	  (3600 * 1000)

struct stats_values {
	const char *member;
	bool once;
	const char *since;
	bool watch;
};

static const struct option options[] = {
	OPTION_MEMBER(offsetof(struct stats_values, member)),
	{OPTION_FLAG, '1', "once", NULL, "show them once, also on a terminal",
		offsetof(struct stats_values, once)},
	{OPTION_TEXT, 0, "since", "TIME",
		"of one: what it used in the last 1h (say; a day at most), step by step",
		offsetof(struct stats_values, since)},
	{OPTION_FLAG, 'w', "watch", NULL, "show them again every two seconds, also elsewhere",
		offsetof(struct stats_values, watch)},
	{OPTION_END},
};

static const char *const heading[] = {"ID", "NAME", "CPU%", "CPU-TIME", "CPUS", "MEMORY", "PEAK",
	"LIMIT", "DISK", "LIMIT", "PIDS", "LIMIT"};

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
	char text[FORMAT_SIZE_LEN] = "";

	if (json_is_number(value))
		format_size((uint64_t)json_number_value(value), text);
	table_add(table, "%s", text);
}

static void add_number(struct table *table, const json_t *value)
{
	if (json_is_number(value))
		table_add(table, "%.15g", json_number_value(value));
	else
		table_add(table, "%s", "");
}

/* A limit that is named as its wall; NULL if it is not in force. */
static const json_t *limit_of(
	const json_t *sandbox, const json_t *stats, const char *wall, const char *name)
{
	return listing_limit_holds(sandbox, wall) ? figure(stats, wall, name) : NULL;
}

static void add_stats(
	struct table *table, const json_t *sandbox, const json_t *stats, double percent)
{
	const json_t *usage_ms = figure(stats, "cpu", "usage_ms");

	table_add(table, "%s", cli_text(sandbox, "id"));
	table_add(table, "%s", cli_text(sandbox, "name"));
	if (percent >= 0)
		table_add(table, "%.1f", percent);
	else
		table_add(table, "%s", "");
	if (json_is_number(usage_ms))
		table_add(table, "%.2fs", json_number_value(usage_ms) / 1000);
	else
		table_add(table, "%s", "");
	add_number(table, limit_of(sandbox, stats, "cpu", "limit"));
	add_bytes(table, figure(stats, "memory", "current_bytes"));
	add_bytes(table, figure(stats, "memory", "peak_bytes"));
	add_bytes(table, limit_of(sandbox, stats, "memory", "limit_bytes"));
	add_bytes(table, figure(stats, "disk", "used_bytes"));
	add_bytes(table, json_is_true(figure(stats, "disk", "enforced"))
				 ? figure(stats, "disk", "limit_bytes")
				 : NULL);
	add_number(table, figure(stats, "pids", "current"));
	add_number(table, limit_of(sandbox, stats, "pids", "limit"));
}

/* The sandboxes to show: those given, or all that run. */
static int choose(
	struct client *client, int argc, char **argv, json_t **ret_sandboxes, struct err *err)
{
	struct listing_filter filter = {.status = "running"};
	json_auto_t *sandboxes = json_array();

	if (argc == 0)
		return listing_fetch(client, &filter, ret_sandboxes, err);
	for (int a = 0; a < argc; a++) {
		json_t *sandbox;
		int r = resolve_get(client, argv[a], "", &sandbox, err);

		if (r < 0)
			return r;
		json_array_append_new(sandboxes, sandbox);
	}
	*ret_sandboxes = json_incref(sandboxes);
	return 0;
}

/* What processor time each sandbox had used, and when that was asked. */
struct showing {
	struct cli *cli;
	struct client *client;
	int argc;
	char **argv;
	json_t *before; /* id -> {"usage_ms": ..., "at_us": ...} */
};

/* Per cent of one core since the last look; -1 at the first. */
static double percent_since(struct showing *showing, const char *id, const json_t *stats)
{
	const json_t *last = json_object_get(showing->before, id);
	double usage_ms = json_number_value(figure(stats, "cpu", "usage_ms"));
	double now_ms = (double)clock_steady_us() / 1000;
	double passed_ms = now_ms - json_number_value(json_object_get(last, "at_ms"));
	double used_ms = usage_ms - json_number_value(json_object_get(last, "usage_ms"));

	json_object_set_new(showing->before, id,
		json_pack("{s:f, s:f}", "usage_ms", usage_ms, "at_ms", now_ms));
	/* Less than before: it was restarted meanwhile. */
	return !last || passed_ms <= 0 || used_ms < 0 ? -1 : 100 * used_ms / passed_ms;
}

/* Calls add for each; all of them as JSON in *ret_all. */
static int look(struct showing *showing, struct table *table, json_t **ret_all, struct err *err)
{
	json_auto_t *all = json_object();
	json_auto_t *sandboxes = NULL;
	const json_t *sandbox;
	size_t i;
	int r = choose(showing->client, showing->argc, showing->argv, &sandboxes, err);

	if (r < 0)
		return r;
	json_array_foreach(sandboxes, i, sandbox)
	{
		const char *id = cli_text(sandbox, "id");
		json_auto_t *stats = NULL;

		/* What a daemon calls an id becomes part of a path. */
		if (!resolve_is_whole(id))
			continue;
		r = fetch(showing->client, id, &stats, err);
		/* One that ended between the list and now, or has no such member, is no failure. */
		if (r < 0 && showing->argc == 0 && err->kind == ERR_NOT_FOUND)
			continue;
		if (r < 0)
			return r;
		json_object_set(all, id, stats);
		add_stats(table, sandbox, stats, percent_since(showing, id, stats));
	}
	*ret_all = json_incref(all);
	return 0;
}

static int show(void *arg, struct err *err)
{
	struct showing *showing = arg;
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	json_auto_t *all = NULL;
	int r;

	table_add_row(&table, heading);
	r = look(showing, &table, &all, err);
	if (r < 0)
		return r;
	if (cli_wants_json(showing->cli))
		cli_print_json(all);
	else
		table_print(&table, stdout);
	return 0;
}

/* The first look only notes where the counters are. */
static int look_before(struct showing *showing, struct err *err)
{
	auto_(table_fini) struct table ignored = TABLE_INIT(array_len(heading));
	json_auto_t *all = NULL;
	int r = look(showing, &ignored, &all, err);

	if (r == 0)
		poll(NULL, 0, SAMPLE_MS);
	return r;
}

/* --- the past of one --- */

static const char *const past_heading[] = {
	"TIME", "CPU%", "MEMORY", "DISK", "RECEIVED/S", "SENT/S"};

/* Times of the daemon all have the same form, so that their texts have their order. */
static json_t *points_since(const json_t *history, int64_t since_ms)
{
	json_t *points = json_array();
	char since[CLOCK_TEXT_LEN];
	const json_t *point;
	size_t i;

	clock_format(since_ms, since);
	json_array_foreach(json_object_get(history, "points"), i, point)
	{
		if (strcmp(cli_text(point, "at"), since) >= 0)
			json_array_append(points, (json_t *)point);
	}
	return points;
}

static void add_point(struct table *table, const json_t *point)
{
	table_add(table, "%s", cli_text(point, "at"));
	table_add(table, "%.1f", 100 * json_number_value(json_object_get(point, "cpu")));
	add_bytes(table, json_object_get(point, "memory_bytes"));
	add_bytes(table, json_object_get(point, "disk_bytes"));
	add_bytes(table, json_object_get(point, "rx_bytes_per_second"));
	add_bytes(table, json_object_get(point, "tx_bytes_per_second"));
}

/* An hour is kept in fine steps, a day in coarse ones. */
static int show_past(
	struct cli *cli, struct client *client, const char *text, int64_t since_ms, struct err *err)
{
	auto_(table_fini) struct table table = TABLE_INIT(array_len(past_heading));
	bool is_fine = clock_wall_ms() - since_ms <= HOUR_MS;
	json_auto_t *history = NULL;
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	const json_t *point;
	size_t i;
	int r = resolve_id(client, text, id, err);

	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/stats/history?window=%s", id, is_fine ? "hour" : "day");
	r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &history, err);
	if (r < 0)
		return r;
	json_object_set_new(history, "points", points_since(history, since_ms));
	if (cli_wants_json(cli)) {
		cli_print_json(history);
		return 0;
	}
	table_add_row(&table, past_heading);
	json_array_foreach(json_object_get(history, "points"), i, point) add_point(&table, point);
	table_print(&table, stdout);
	return 0;
}

static int run_past(struct cli *cli, const char *since, int argc, char **argv, struct err *err)
{
	struct client *client;
	int64_t since_ms;
	int r = since_parse(since, &since_ms, err);

	if (r == 0 && argc != 1)
		r = err_set(err, ERR_INVALID, "--since is about one sandbox: name it");
	if (r == 0)
		r = cli_connect(cli, &client, err);
	return r < 0 ? r : show_past(cli, client, argv[0], since_ms, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct stats_values *v = values;
	bool is_live = v->watch || (!v->once && !cli_wants_json(cli) && isatty(STDOUT_FILENO));
	struct showing showing = {.cli = cli, .argc = argc, .argv = argv, .before = json_object()};
	int r;

	if (v->since) {
		json_decref(showing.before);
		return v->member ? err_set(err, ERR_INVALID, "--since goes without --member")
				 : run_past(cli, v->since, argc, argv, err);
	}
	r = cli_connect(cli, &showing.client, err);
	if (r == 0)
		client_mean_member(showing.client, v->member);
	if (r == 0 && !cli_wants_json(cli))
		r = look_before(&showing, err);
	if (r == 0)
		r = is_live ? refresh_run(showing.client, show, &showing, err)
			    : show(&showing, err);
	json_decref(showing.before);
	return r;
}

const struct command cmd_stats = {
	.name = "stats",
	.operands = "[ID...]",
	.summary = "show what sandboxes use",
	.details = "Without an id, all that run. On a terminal they are shown again every two "
		   "seconds, until\n"
		   "Ctrl-C. 100 per cent are one core. Limits that are not in force are not shown. "
		   "JSON is an object with the id as key. With\n"
		   "--since the past of one: an hour in steps of 10 seconds, more in steps of 5\n"
		   "minutes; it is kept in memory, and begins anew when the daemon does.\n\n"
		   "  sandlot stats\n"
		   "  sandlot stats -1 01k9\n"
		   "  sandlot stats --member database 01k9\n"
		   "  sandlot stats --since 10m 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct stats_values),
	.min_operands = 0,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
