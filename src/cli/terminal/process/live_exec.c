/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/live_exec.h"

#include "base/signal_name.h"
#include "cli/cli.h"
#include "cli/process_ref.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output/output_stream.h"
#include "cli/terminal/process/follow.h"
#include "cli/terminal/process/reconnect.h"

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
	bool is_timeout = reason && strcmp(reason, "timeout") == 0;

	note[0] = '\0';
	if (reason && strcmp(reason, "exited") != 0 && strcmp(reason, "signal") != 0)
		snprintf(note, note_size, "the command was ended: %s%s%s%s", reason,
			is_timeout ? " (to give it longer: exec -T TIME)" : "", detail ? ": " : "",
			detail ? detail : "");
	else if (detail && (signal || json_integer_value(code) != 0))
		snprintf(note, note_size, "%s", detail);
	if (is_timeout)
		return LIVE_EXEC_TIMEOUT;
	if (signal)
		return 128 + signal;
	return json_is_integer(code) ? (int)(json_integer_value(code) & 0xff) : -EINVAL;
}

/* Of the advised command only what follows its sandbox is meant for the next run. */
static bool advise_limit(char *note, size_t size)
{
	char *at = strstr(note, "sandlot update ");
	const char *option = at ? strstr(at, " --") : NULL;
	char limit[64];

	if (!option)
		return false;
	snprintf(limit, sizeof(limit), "%s", option);
	snprintf(at, size - (size_t)(at - note), "sandlot run%s ...", limit);
	return true;
}

void live_exec_advise_run(char *note, size_t size, const char *mode)
{
	static const char begin[] = "sandlot egress ", allow[] = " --allow ", change[] = " --mode ";
	char *at = strstr(note, begin);
	char *option = at ? strstr(at, allow) : NULL;
	char rule[256];

	if (advise_limit(note, size))
		return;
	if (option) {
		snprintf(rule, sizeof(rule), "%s", option + strlen(allow));
		snprintf(at, size - (size_t)(at - note), "sandlot run --network %s --allow %s ...",
			strcmp(mode, "internet") == 0 ? mode : "allowlist", rule);
	} else if (at && strstr(at, change)) {
		snprintf(at, size - (size_t)(at - note), "sandlot run --network internet ...");
	}
}

/* One command, from its start to its end. */
struct running {
	struct client *client;
	struct process_ref ref; /* its process is known once the stream has begun */
	struct output_stream output;
};

static void running_fini(struct running *running)
{
	output_stream_fini(&running->output);
}

/* The first event names it. */
static bool take_start(void *arg, const char *name, const json_t *data)
{
	struct running *running = arg;
	const char *process = json_string_value(json_object_get(data, "process"));

	if (strcmp(name, "start") != 0)
		return false;
	if (process && process_ref_is_name(process))
		snprintf(running->ref.process, sizeof(running->ref.process), "%s", process);
	return true;
}

static int copy(struct running *running, struct err *err)
{
	char chunk[65536];

	for (;;) {
		ssize_t n = client_read(running->client, chunk, sizeof(chunk), err);
		int r;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_explain(err, ERR_UNAVAILABLE, "connection_lost",
				"see \"sandlot ps -a ID\" for whether it still runs",
				"the daemon closed the stream before the command ended");
		r = output_stream_feed(&running->output, chunk, (size_t)n, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

/*
 * The stream was lost, which is not the end of the command: one that the daemon has left behind goes on, and its
 * output is kept. What ends us ends it, as before.
 */
static int go_on(struct running *running, json_t **ret, struct err *err)
{
	struct follow follow = {.process = &running->ref,
		.from = running->output.has_next ? running->output.next : 0,
		.is_lost = true};
	struct interrupt *interrupt = client_interrupt(running->client);
	bool was_watched = interrupt->is_watched;
	int r = interrupt_hold(interrupt, err);

	if (r < 0)
		return r;
	interrupt_watch(interrupt, true);
	r = follow_run(running->client, &follow, ret, err);
	interrupt_watch(interrupt, was_watched);
	if (r < 0 && reconnect_is_for(err))
		process_ref_tell(running->client, &running->ref, "attach");
	else if (r < 0)
		process_ref_kill(running->client, &running->ref);
	return r;
}

static int stream(
	struct running *running, const struct client_call *call, json_t **ret, struct err *err)
{
	int r = client_open(running->client, call, err);

	if (r < 0)
		return r;
	output_stream_init(&running->output, STDOUT_FILENO, STDERR_FILENO);
	running->output.take = take_start;
	running->output.arg = running;
	r = copy(running, err);
	if (r == 0) {
		client_drain(running->client);
		*ret = json_incref(running->output.result);
	}
	client_close(running->client);
	if (r < 0 && running->ref.process[0] && reconnect_is_for(err))
		r = go_on(running, ret, err);
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

int live_exec_run(struct client *client, const char *id, const char *mode, const json_t *body,
	bool as_json, int *ret_exit, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/exec", id);
	struct client_call call = {
		.method = "POST",
		.path = path,
		.body = body,
		.accept = as_json ? "application/json" : "text/event-stream",
	};
	auto_(running_fini) struct running running = {.client = client};
	json_auto_t *result = NULL;
	char note[8];
	int r;

	snprintf(running.ref.sandbox, sizeof(running.ref.sandbox), "%s", id);
	r = as_json ? client_json(client, &call, &result, err)
		    : stream(&running, &call, &result, err);
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
