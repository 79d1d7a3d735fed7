/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/background_exec.h"

#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/follow.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/reconnect.h"
#include "cli/terminal/process/remote_shell.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>

static void ask_for_terminal(json_t *body)
{
	struct terminal_size size = terminal_size();
	const char *term = getenv("TERM");
	json_t *env = json_object_get(body, "env");

	json_object_set_new(body, "pty", json_true());
	json_object_set_new(body, "cols", json_integer(size.cols));
	json_object_set_new(body, "rows", json_integer(size.rows));
	if (!env) {
		env = json_object();
		json_object_set_new(body, "env", env);
	}
	if (term && term[0] && !json_object_get(env, "TERM"))
		json_object_set_new(env, "TERM", json_string(term));
}

static int start(struct client *client, const struct background_exec *how, json_t *body,
	struct process_ref *ref, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/exec", ref->sandbox);
	struct client_call call = {.method = "POST", .path = path, .body = body};
	int r;

	json_object_set_new(body, "background", json_true());
	if (how->tty)
		ask_for_terminal(body);
	else
		json_object_set_new(body, "stdin_open", json_boolean(how->interactive));
	r = client_json(client, &call, ret, err);
	return r < 0 ? r : process_ref_name(json_object_get(*ret, "process"), ref, err);
}

/* Follows it to its end. What ends us ends it, as it would a command of ours; but not the loss of
 * the daemon, which it survives. */
static int accompany(struct client *client, const struct process_ref *ref,
	const struct background_exec *how, int *ret_exit, struct err *err)
{
	struct follow follow = {.process = ref, .with_stdin = how->interactive};
	json_auto_t *result = NULL;
	int r;

	interrupt_watch(client_interrupt(client), true);
	r = follow_run(client, &follow, &result, err);
	interrupt_watch(client_interrupt(client), false);
	if (r == 0)
		return live_exec_report(result, how->mode, ret_exit, err);
	if (reconnect_is_for(err))
		process_ref_tell(client, ref, "attach");
	else
		process_ref_kill(client, ref);
	return r;
}

int background_exec_run(struct cli *cli, struct client *client, struct background_exec *how,
	json_t *body, struct process_ref *ref, struct err *err)
{
	json_auto_t *started = NULL;
	struct remote_shell shell;
	int exit_code = 0;
	int r = 0;

	/* Not watched yet: a start that is cut in the middle leaves a process without a name. */
	if (!how->detach && !(how->tty && how->interactive))
		r = interrupt_hold(client_interrupt(client), err);
	if (r == 0)
		r = start(client, how, body, ref, &started, err);
	if (r < 0)
		return r;
	if (how->detach && cli_wants_json(cli)) {
		cli_print_json(started);
	} else if (how->detach) {
		puts(how->owns_sandbox ? ref->sandbox : ref->process);
	} else if (how->tty && how->interactive) {
		shell = (struct remote_shell){.ref = *ref,
			.is_new = true,
			.ends_with_us = how->owns_sandbox,
			.mode = how->mode};
		r = remote_shell_run(client, &shell, &exit_code, err);
		how->has_left = shell.has_left;
	} else {
		r = accompany(client, ref, how, &exit_code, err);
	}
	return r < 0 ? r : exit_code;
}
