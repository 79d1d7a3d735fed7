/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/event_follow.h"

#include "base/format.h"
#include "cli/command.h"

#include <errno.h>
#include <unistd.h>

int event_follow(struct client *client, event_fn visit, void *arg, struct err *err)
{
	struct event_reader reader;
	char chunk[16384];
	ssize_t n;
	int r = 0;

	event_reader_init(&reader);
	while (r == 0 && (n = client_read(client, chunk, sizeof(chunk), err)) != 0)
		r = n < 0 ? (int)n : event_reader_feed(&reader, chunk, (size_t)n, visit, arg);
	event_reader_fini(&reader);
	if (r == -EMSGSIZE) {
		char most[FORMAT_SIZE_LEN];

		format_size(EVENT_READER_MAX, most);
		return err_set(err, ERR_INTERNAL, "the daemon sent an event larger than %s", most);
	}
	return r;
}

struct printer {
	bool as_json;
	event_line_fn line_of;
	struct err *err;
};

static int print(const struct event *event, void *arg)
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
		printer->line_of(&line, event, data);
	}
	buf_append_str(&line, "\n");
	return cli_write(STDOUT_FILENO, line.data, line.len, printer->err);
}

int event_follow_print(struct client *client, bool as_json, event_line_fn line_of, struct err *err)
{
	struct printer printer = {as_json, line_of, err};

	return event_follow(client, print, &printer, err);
}
