/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/live_exec.h"

#include "base/signal_name.h"
#include "cli/cli.h"
#include "cli/terminal/output/output_stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "SIGKILL", "KILL" or 9. */
static int signal_number(const json_t *signal)
{
	const char *name = json_string_value(signal);

	if (json_is_integer(signal)) {
		json_int_t number = json_integer_value(signal);

		return number > 0 && number < NSIG ? (int)number : 0;
	}
	return name ? signal_name_parse(name) : 0;
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
	else if (detail && (signal || json_integer_value(code) != 0))
		snprintf(note, note_size, "%s", detail);
	if (reason && strcmp(reason, "timeout") == 0)
		return LIVE_EXEC_TIMEOUT;
	if (signal)
		return 128 + signal;
	return json_is_integer(code) ? (int)(json_integer_value(code) & 0xff) : -EINVAL;
}

void live_exec_advise_run(char *note, size_t size, const char *mode)
{
	static const char begin[] = "sandlot egress ", allow[] = " --allow ", change[] = " --mode ";
	char *at = strstr(note, begin);
	char *option = at ? strstr(at, allow) : NULL;
	char rule[256];

	if (option) {
		snprintf(rule, sizeof(rule), "%s", option + strlen(allow));
		snprintf(at, size - (size_t)(at - note), "sandlot run --network %s --allow %s ...",
			strcmp(mode, "internet") == 0 ? mode : "allowlist", rule);
	} else if (at && strstr(at, change)) {
		snprintf(at, size - (size_t)(at - note), "sandlot run --network internet ...");
	}
}

static int copy(struct client *client, struct output_stream *output, struct err *err)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = client_read(client, chunk, sizeof(chunk), err);
		int r;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_explain(err, ERR_UNAVAILABLE, "connection_lost",
				"a foreground command ends with its connection: run it again",
				"the daemon closed the stream before the command ended");
		r = output_stream_feed(output, chunk, (size_t)n, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static int stream(
	struct client *client, const struct client_call *call, json_t **ret, struct err *err)
{
	auto_(output_stream_fini) struct output_stream output = {0};
	int r = client_open(client, call, err);

	if (r < 0)
		return r;
	output_stream_init(&output, STDOUT_FILENO, STDERR_FILENO);
	r = copy(client, &output, err);
	if (r == 0) {
		client_drain(client);
		*ret = json_incref(output.result);
	}
	client_close(client);
	return r;
}

int live_exec_report(const json_t *result, const char *mode, int *ret_exit, struct err *err)
{
	char note[512];
	int r = live_exec_exit_code(result, note, sizeof(note));

	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not say how the command ended");
	if (mode)
		live_exec_advise_run(note, sizeof(note), mode);
	if (note[0])
		cli_note("%s", note);
	*ret_exit = r;
	return 0;
}

int live_exec_run(struct client *client, const char *id, const char *member, const char *mode,
	const json_t *body, bool as_json, int *ret_exit, struct err *err)
{
	auto_free char *path = mem_printf(
		"/v1/sandboxes/%s/exec%s%s", id, member ? "?member=" : "", member ? member : "");
	struct client_call call = {
		.method = "POST",
		.path = path,
		.body = body,
		.accept = as_json ? "application/json" : "text/event-stream",
	};
	json_auto_t *result = NULL;
	char note[8];
	int r = as_json ? client_json(client, &call, &result, err)
			: stream(client, &call, &result, err);

	if (r < 0)
		return r;
	if (!as_json)
		return live_exec_report(result, mode, ret_exit, err);
	r = live_exec_exit_code(result, note, sizeof(note));
	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not say how the command ended");
	cli_print_json(result);
	*ret_exit = r;
	return 0;
}
