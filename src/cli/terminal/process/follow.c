/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/follow.h"

#include "cli/terminal/output/output_stream.h"
#include "cli/terminal/process/input_pump.h"
#include "cli/terminal/process/reconnect.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define STATUS_NO_CONTENT 204 /* all was seen, also the end */

struct following {
	struct client *client;
	const struct follow *follow;
	struct output_stream output;
	struct input_pump input;
	struct reconnect reconnect;
};

static void following_fini(struct following *f)
{
	output_stream_fini(&f->output);
	input_pump_fini(&f->input);
}

/* Where the stream is, from an offset on. */
static char *make_path(const struct follow *follow, uint64_t from)
{
	auto_free char *query =
		mem_printf("?from=%" PRIu64 "&follow=%s", from, follow->is_once ? "false" : "true");
	auto_free char *rest = NULL;

	if (follow->job)
		return mem_printf("/v1/jobs/%s/log%s", follow->job, query);
	rest = mem_printf("/output%s", query);
	return process_ref_path(follow->process, rest);
}

static int open_output(struct following *f, struct err *err)
{
	uint64_t from = f->output.has_next ? f->output.next : f->follow->from;
	auto_free char *path = make_path(f->follow, from);
	struct client_call call = {.method = "GET", .path = path, .accept = "text/event-stream"};

	output_stream_restart(&f->output);
	return client_open(f->client, &call, err);
}

static int step_input(struct following *f, struct err *err)
{
	int r;

	if (!f->follow->with_stdin)
		return 0;
	r = input_pump_step(&f->input, err);
	if (r < 0)
		return r;
	client_wake(f->client, input_pump_fd(&f->input), input_pump_wait_ms(&f->input));
	return 0;
}

/* Until the stream ends: OUTPUT_STREAM_ENDED with the process, 0 without. */
static int copy(struct following *f, struct err *err)
{
	char chunk[65536];

	for (;;) {
		ssize_t n;
		int r = step_input(f, err);

		if (r < 0)
			return r;
		n = client_read(f->client, chunk, sizeof(chunk), err);
		if (n == CLIENT_WOKEN)
			continue;
		if (n <= 0)
			return (int)n;
		r = output_stream_feed(&f->output, chunk, (size_t)n, err);
		if (r != 0)
			return r;
	}
}

/* One connection: 0 when all is done. */
static int once(struct following *f, struct err *err)
{
	int r = open_output(f, err);

	if (r < 0)
		return r;
	reconnect_connected(&f->reconnect);
	if (client_status(f->client) == STATUS_NO_CONTENT)
		return 0;
	r = copy(f, err);
	if (r == OUTPUT_STREAM_ENDED)
		client_drain(f->client);
	if (r == 0 && !f->follow->is_once)
		return err_explain(err, ERR_UNAVAILABLE, "connection_lost", NULL,
			"the daemon closed the stream before its end");
	return r < 0 ? r : 0;
}

int follow_run(struct client *client, const struct follow *follow, json_t **ret, struct err *err)
{
	auto_(following_fini) struct following f = {.client = client, .follow = follow};
	int r = 0;

	output_stream_init(&f.output, STDOUT_FILENO, STDERR_FILENO);
	f.output.lines = follow->lines;
	if (follow->with_stdin)
		r = input_pump_init(&f.input, client, follow->process, err);
	if (r == 0 && follow->is_lost) {
		f.reconnect.was_connected = true;
		err_set(err, ERR_UNAVAILABLE, "the connection is lost");
		r = reconnect_wait(&f.reconnect, client, -EAGAIN, err);
	}
	while (r == 0) {
		r = once(&f, err);
		client_close(client);
		if (r == 0) {
			*ret = json_incref(f.output.result);
			if (follow->ret_next && f.output.has_next)
				*follow->ret_next = f.output.next;
			return 0;
		}
		r = reconnect_wait(&f.reconnect, client, r, err);
	}
	return r;
}
