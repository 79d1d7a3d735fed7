/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/remote/event_follow.h"
#include "cli/remote/query.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

#include <string.h>

#define TARGET_MAX 1024

struct events_values {
	bool follow; /* what it always does; for those who are used to saying so */
	const char *topics;
};

static const struct option options[] = {
	{OPTION_FLAG, 'f', "follow", NULL, "go on until interrupted, as it does anyway",
		offsetof(struct events_values, follow)},
	{OPTION_TEXT, 't', "topics", "LIST",
		"only these: sandbox, start, port, network, job, execution, project, member, pool, "
		"process, stats; with commas between",
		offsetof(struct events_values, topics)},
	{OPTION_END},
};

/* "12:00:00  sandbox.running  01k9...  {...}": what it is about first, then what else there is. */
static void print_line(struct buf *line, const struct event *event, json_t *data)
{
	const char *about = cli_text(data, json_object_get(data, "job") ? "job" : "sandbox");
	auto_free char *rest = NULL;
	char name[48], subject[40];

	snprintf(name, sizeof(name), "%s", event->name);
	snprintf(subject, sizeof(subject), "%s", about);
	table_tame(name);
	table_tame(subject);
	json_object_del(data, "job");
	json_object_del(data, "sandbox");
	rest = cli_dump_json(data, JSON_COMPACT | JSON_ENSURE_ASCII);
	buf_printf(line, "%-18s %-26s %s", name, subject, rest);
}

/* The stream of a sandbox, or of all. */
static int make_target(struct client *client, const struct events_values *v, const char *sandbox,
	struct buf *target, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	int r = 0;

	if (sandbox)
		r = resolve_id(client, sandbox, id, err);
	if (r < 0)
		return r;
	if (sandbox && !v->topics)
		buf_printf(target, "/v1/sandboxes/%s/events", id);
	else
		buf_append_str(target, "/v1/events");
	query_add(target, "topics", v->topics);
	if (v->topics)
		query_add(target, "sandbox", sandbox ? id : NULL);
	return target->failed ? err_set(err, ERR_INVALID, "the list of topics is too long") : 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	struct client_call call = {.method = "GET", .accept = "text/event-stream"};
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = make_target(client, values, argc > 0 ? argv[0] : NULL, &target, err);
	if (r < 0)
		return r;
	path = buf_take_str(&target);
	call.path = path;
	r = client_open(client, &call, err);
	if (r == 0)
		r = event_follow_print(client, cli_wants_json(cli), print_line, err);
	client_close(client);
	return r;
}

const struct command cmd_events = {
	.name = "events",
	.operands = "[ID]",
	.summary = "follow what happens to sandboxes and jobs",
	.details = "One line an event, of all that is yours or of one sandbox, until interrupted. "
		   "Ports are\n"
		   "only looked at in a sandbox that is followed by its ID. A line \"missed\" says "
		   "that events\n"
		   "came faster than they were read.\n\n"
		   "  sandlot events -f\n"
		   "  sandlot events -f --topics sandbox,job\n"
		   "  sandlot events -f --topics process,stats 01k9\n"
		   "  sandlot events -f -o json 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct events_values),
	.min_operands = 0,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
