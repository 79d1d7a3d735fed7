/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/process_ref.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/reconnect.h"

#include <string.h>

/* Short enough for any proxy on the way; then it is asked again. */
#define HOLD "/wait?timeout_ms=30000"

#define TIMEOUT_MS   600000
#define PAUSE_MS     50 /* between two looks; grows up to the next */
#define PAUSE_MAX_MS 1000

static bool has_ended(const json_t *process)
{
	const char *status = json_string_value(json_object_get(process, "status"));

	return status && strcmp(status, "exited") == 0;
}

static int wait_for_end(
	struct client *client, const struct process_ref *ref, json_t **ret, struct err *err)
{
	struct reconnect reconnect = {0};
	int r = 0;

	/* The caller had an answer a moment ago. */
	reconnect_connected(&reconnect);
	while (r == 0) {
		json_auto_t *process = NULL;

		r = process_ref_ask(client, ref, "GET", HOLD, NULL, &process, err);
		if (r < 0) {
			r = reconnect_wait(&reconnect, client, r, err);
			continue;
		}
		reconnect_connected(&reconnect);
		if (has_ended(process)) {
			*ret = json_incref(process);
			return 0;
		}
	}
	return r;
}

struct wait_values {
	const char *member;
	bool ready;
	struct option_number timeout;
};

static const struct option options[] = {
	OPTION_MEMBER(offsetof(struct wait_values, member)),
	{OPTION_FLAG, 0, "ready", NULL, "until the sandbox is ready, as its template says",
		offsetof(struct wait_values, ready)},
	{OPTION_SECONDS, 0, "timeout", "TIME", "with --ready: at most so long; 10m unless told",
		offsetof(struct wait_values, timeout)},
	{OPTION_END},
};

/* --- sandboxes --- */

/* 1: it is ready. ERR_CONFLICT if it will not become so by itself. */
static int look(struct client *client, const char *id, json_t **ret_sandbox, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id);
	json_t *sandbox;
	const char *status;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &sandbox, err);

	if (r < 0)
		return r;
	status = cli_text(sandbox, "status");
	if (json_is_true(json_object_get(sandbox, "ready"))) {
		*ret_sandbox = sandbox;
		return 1;
	}
	if (strcmp(status, "running") != 0 && strcmp(status, "creating") != 0)
		r = err_explain(err, ERR_CONFLICT, "not_running", "start it with sandlot start",
			"sandbox %s is %s", id, status);
	json_decref(sandbox);
	return r;
}

static int wait_until_ready(struct cli *cli, struct client *client, const struct wait_values *v,
	const char *name, struct err *err)
{
	uint64_t end_ms = clock_steady_ms() + (v->timeout.is_set ? v->timeout.value : TIMEOUT_MS);
	json_auto_t *sandbox = NULL;
	char id[RESOLVE_ID_LEN + 1];
	int pause_ms = PAUSE_MS;
	int r = resolve_id(client, name, id, err);

	while (r == 0 && (r = look(client, id, &sandbox, err)) == 0) {
		if (clock_steady_ms() >= end_ms)
			return err_explain(err, ERR_TIMEOUT, "not_ready",
				"see what its start commands say, with sandlot logs",
				"sandbox %s has not become ready", id);
		r = interrupt_wait(client_interrupt(client), -1, 0, pause_ms, err);
		pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
	}
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(sandbox);
	return 0;
}

/* --- processes --- */

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct wait_values *v = values;
	json_auto_t *process = NULL;
	json_auto_t *now = NULL;
	struct process_ref ref;
	struct client *client;
	char note[512];
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	if (v->ready != (argc == 1))
		return err_set(err, ERR_INVALID, "name a process, or say --ready");
	if (v->ready && v->member)
		return err_set(err, ERR_INVALID,
			"--ready goes without --member: \"sandlot inspect\" tells the health of "
			"members");
	client_mean_member(client, v->member);
	if (v->ready)
		return wait_until_ready(cli, client, v, argv[0], err);
	if (r == 0)
		r = process_ref_find(client, argv[0], argv[1], &ref, err);
	/* At once, so that a daemon or process that is not there is told without patience. */
	if (r == 0)
		r = process_ref_ask(client, &ref, "GET", "", NULL, &now, err);
	if (r == 0)
		r = process_ref_name(now, &ref, err);
	if (r == 0)
		r = wait_for_end(client, &ref, &process, err);
	if (r < 0)
		return r;
	r = live_exec_exit_code(process, note, sizeof(note));
	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not say how the process ended");
	if (cli_wants_json(cli))
		cli_print_json(process);
	else if (note[0])
		cli_note("%s", note);
	return r;
}

const struct command cmd_wait = {
	.name = "wait",
	.operands = "SANDBOX PROCESS",
	.summary = "wait for a process to end, and end with its exit code",
	.tables = {{options, 0}},
	.values_size = sizeof(struct wait_values),
	.details = "Prints nothing, or with --json the process; on standard error why it failed, "
		   "if that is\n"
		   "known. A daemon that is restarted meanwhile is asked again.\n\n"
		   "  sandlot wait 01k9 p7 || echo failed\n\n"
		   "With --ready and no process: waits until the sandbox is ready, as the ready "
		   "check of its\ntemplate says. Without one it is as soon as it runs.\n\n"
		   "  sandlot wait 01k9 --ready\n",
	.min_operands = 1,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
