/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal in a sandbox, on the terminal we run in, as with ssh: what is typed goes there, what it
 * prints comes here, the window has the same size, and the exit code is passed on.
 *
 * The process belongs to the sandbox, not to the connection. When that is lost it is made again, and
 * the output goes on at the byte where it stopped. Ctrl-P Ctrl-Q leaves without ending the process.
 */
#pragma once

#include "base/err.h"
#include "cli/process_ref.h"
#include "cli/remote/client.h"

struct remote_shell {
	struct process_ref ref; /* with an empty process: a new login shell */
	const char *user;	/* of that one; NULL for the default */
	const char *cwd;
	bool is_new;	   /* the process was just started: all of its output is wanted */
	bool ends_with_us; /* only the keys to detach leave it running */
	const char *mode;  /* see live_exec_report() */
	bool has_left;	   /* set: they were typed */
};

/* Fails with the advice of a command if standard input is no terminal. */
int remote_shell_check(const char *advice, struct err *err) must_check;

/* *ret_exit is the exit code of the process, or 0 after the keys to detach. */
int remote_shell_run(struct client *client, struct remote_shell *shell, int *ret_exit,
	struct err *err) must_check;
