/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/remote/event_follow.h"
#include "cli/remote/query.h"
#include "cli/remote/resolve.h"
#include "cli/text/path_text.h"
#include "cli/text/table.h"

#include <string.h>

#define TARGET_MAX (16u * 1024)

struct watch_values {
	const char *member;
	bool is_recursive;
};

static const struct option options[] = {
	OPTION_MEMBER(offsetof(struct watch_values, member)),
	{OPTION_FLAG, 'r', "recursive", NULL, "watch all directories below too",
		offsetof(struct watch_values, is_recursive)},
	{OPTION_END},
};

static void print_line(struct buf *line, const struct event *event, json_t *data)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", event->name);
	table_tame(name);
	buf_printf(line, "%-8s", name);
	path_text_add(line, data, "path");
	path_text_add(line, data, "to");
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct watch_values *v = values;
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	struct client_call call = {.method = "GET", .accept = "text/event-stream"};
	auto_free char *path = NULL;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		client_mean_member(client, v->member);
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r < 0)
		return r;
	buf_printf(&target, "/v1/sandboxes/%s/files/watch", id);
	query_add(&target, "path", argv[1]);
	query_add(&target, "recursive", v->is_recursive ? "true" : NULL);
	if (target.failed)
		return err_set(err, ERR_INVALID, "the path is too long");
	path = buf_take_str(&target);
	call.path = path;
	r = client_open(client, &call, err);
	/* The stream ends after an event "gone". */
	if (r == 0)
		r = event_follow_print(client, cli_wants_json(cli), print_line, err);
	client_close(client);
	return r;
}

const struct command cmd_watch = {
	.name = "watch",
	.operands = "ID PATH",
	.summary = "follow what happens to files in a sandbox",
	.details = "One line a change, until PATH or the sandbox is gone. A line \"overflow\" says "
		   "that some were missed.\n\n"
		   "  sandlot watch 01k9 /workspace/log.txt\n"
		   "  sandlot watch -r 01k9 /workspace\n"
		   "  sandlot watch -o json 01k9 /workspace | jq -r .path\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct watch_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
