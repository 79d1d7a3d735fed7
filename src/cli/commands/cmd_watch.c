/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/remote/event_reader.h"
#include "cli/remote/query.h"
#include "cli/remote/resolve.h"
#include "cli/text/path_text.h"
#include "cli/text/table.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TARGET_MAX (16u * 1024)

struct watch_values {
	bool is_recursive;
};

static const struct option options[] = {
	{OPTION_FLAG, 'r', "recursive", NULL, "watch all directories below too",
		offsetof(struct watch_values, is_recursive)},
	{OPTION_END},
};

struct printer {
	bool as_json;
	struct err *err;
};

static int on_event(const struct event *event, void *arg)
{
	struct printer *printer = arg;
	json_auto_t *data = json_loadb(event->data, event->data_len, 0, NULL);
	auto_(buf_fini) struct buf line = BUF_INIT(EVENT_READER_MAX);

	if (!json_is_object(data))
		return err_set(
			printer->err, ERR_INTERNAL, "the daemon sent an event that is not JSON");
	if (printer->as_json) {
		auto_free char *text = NULL;

		json_object_set_new(data, "event", json_string(event->name));
		text = cli_dump_json(data, JSON_COMPACT);
		buf_append_str(&line, text);
	} else {
		char name[32];

		snprintf(name, sizeof(name), "%s", event->name);
		table_tame(name);
		buf_printf(&line, "%-8s", name);
		path_text_add(&line, data, "path");
		path_text_add(&line, data, "to");
	}
	buf_append_str(&line, "\n");
	return cli_write(STDOUT_FILENO, line.data, line.len, printer->err);
}

/* Until the stream ends, which it does after an event "gone". */
static int follow(struct client *client, struct printer *printer)
{
	struct event_reader reader;
	char chunk[16384];
	ssize_t n;
	int r = 0;

	event_reader_init(&reader);
	while (r == 0 && (n = client_read(client, chunk, sizeof(chunk), printer->err)) != 0)
		r = n < 0 ? (int)n
			  : event_reader_feed(&reader, chunk, (size_t)n, on_event, printer);
	event_reader_fini(&reader);
	if (r == -EMSGSIZE)
		return err_set(printer->err, ERR_INTERNAL,
			"the daemon sent an event larger than %u bytes", EVENT_READER_MAX);
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct watch_values *v = values;
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	struct printer printer = {.as_json = cli_wants_json(cli), .err = err};
	struct client_call call = {.method = "GET", .accept = "text/event-stream"};
	auto_free char *path = NULL;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
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
	if (r == 0)
		r = follow(client, &printer);
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
