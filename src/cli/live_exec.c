/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/live_exec.h"

#include "cli/base64.h"
#include "cli/cli.h"
#include "cli/event_reader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STREAM_ENDED 1 /* what the visitor returns after the exit event */

struct live {
	struct buf decoded;
	json_t *result;
	struct err *err;
};

/* "SIGKILL", "KILL" or 9. */
static int signal_number(const json_t *signal)
{
	const char *name = json_string_value(signal);

	if (json_is_integer(signal)) {
		json_int_t number = json_integer_value(signal);

		return number > 0 && number < NSIG ? (int)number : 0;
	}
	if (!name)
		return 0;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

int live_exec_exit_code(const json_t *result, char *note, size_t note_size)
{
	const json_t *termination = json_object_get(result, "termination");
	const char *reason = json_string_value(json_object_get(termination, "reason"));
	const char *detail = json_string_value(json_object_get(termination, "detail"));
	const json_t *code = json_object_get(result, "exit_code");
	int signal = signal_number(json_object_get(termination, "signal"));

	note[0] = '\0';
	if (reason && strcmp(reason, "exited") != 0 && strcmp(reason, "signal") != 0)
		snprintf(note, note_size, "the command was ended: %s%s%s", reason,
			detail ? ": " : "", detail ? detail : "");
	if (reason && strcmp(reason, "timeout") == 0)
		return LIVE_EXEC_TIMEOUT;
	if (signal)
		return 128 + signal;
	return json_is_integer(code) ? (int)(json_integer_value(code) & 0xff) : -EINVAL;
}

static int write_output(struct live *live, int fd, const json_t *data)
{
	const json_t *text = json_object_get(data, "data");
	const json_t *encoded = json_object_get(data, "data_base64");

	if (json_is_string(text))
		return cli_write(fd, json_string_value(text), json_string_length(text), live->err);
	live->decoded.len = 0;
	if (!json_is_string(encoded) || base64_decode(json_string_value(encoded),
						json_string_length(encoded), &live->decoded) < 0)
		return err_set(live->err, ERR_INTERNAL, "the daemon sent output in no known form");
	return cli_write(fd, live->decoded.data, live->decoded.len, live->err);
}

static int server_error(const json_t *data, struct err *err)
{
	const json_t *error = json_object_get(data, "error");
	const char *message = json_string_value(json_object_get(error ? error : data, "message"));

	return err_set(err, ERR_INTERNAL, "%s", message ? message : "the daemon gave up");
}

static int on_event(const struct event *event, void *arg)
{
	struct live *live = arg;
	json_auto_t *data = json_loadb(event->data, event->data_len, JSON_ALLOW_NUL, NULL);

	if (!data)
		return err_set(
			live->err, ERR_INTERNAL, "the daemon sent an event that is not JSON");
	if (strcmp(event->name, "stdout") == 0)
		return write_output(live, STDOUT_FILENO, data);
	if (strcmp(event->name, "stderr") == 0)
		return write_output(live, STDERR_FILENO, data);
	if (strcmp(event->name, "error") == 0)
		return server_error(data, live->err);
	if (strcmp(event->name, "exit") != 0)
		return 0;
	live->result = json_incref(data);
	return STREAM_ENDED;
}

static int follow(struct client *client, struct live *live, struct event_reader *reader)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = client_read(client, chunk, sizeof(chunk), live->err);
		int r;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_explain(live->err, ERR_UNAVAILABLE, "connection_lost",
				"a foreground command ends with its connection: run it again",
				"the daemon closed the stream before the command ended");
		r = event_reader_feed(reader, chunk, (size_t)n, on_event, live);
		if (r == -EMSGSIZE)
			return err_set(live->err, ERR_INTERNAL,
				"the daemon sent an event larger than %u bytes", EVENT_READER_MAX);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static int stream(
	struct client *client, const struct client_call *call, json_t **ret, struct err *err)
{
	struct live live = {.decoded = BUF_INIT(EVENT_READER_MAX), .err = err};
	struct event_reader reader;
	int r = client_open(client, call, err);

	if (r < 0)
		return r;
	event_reader_init(&reader);
	r = follow(client, &live, &reader);
	if (r == 0) {
		client_drain(client);
		*ret = live.result;
	}
	client_close(client);
	event_reader_fini(&reader);
	buf_fini(&live.decoded);
	return r;
}

int live_exec_run(struct client *client, const char *id, const json_t *body, bool as_json,
	int *ret_exit, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/exec", id);
	struct client_call call = {
		.method = "POST",
		.path = path,
		.body = body,
		.accept = as_json ? "application/json" : "text/event-stream",
	};
	json_auto_t *result = NULL;
	char note[512];
	int r = as_json ? client_json(client, &call, &result, err)
			: stream(client, &call, &result, err);

	if (r < 0)
		return r;
	r = live_exec_exit_code(result, note, sizeof(note));
	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not say how the command ended");
	if (as_json)
		cli_print_json(result);
	else if (note[0])
		cli_note("%s", note);
	*ret_exit = r;
	return 0;
}
