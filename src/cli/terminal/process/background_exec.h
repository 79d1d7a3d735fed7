/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that is started in the background of a sandbox and then left, followed, fed or attached
 * to. It does not depend on the connection.
 */
#pragma once

#include "cli/cli.h"
#include "cli/process_ref.h"

struct background_exec {
	bool detach;
	bool interactive; /* standard input is passed on, as it comes */
	bool tty;
	bool owns_sandbox; /* the sandbox was made for this command alone, and detach prints its id */
	const char *mode; /* of the network of a sandbox that is gone afterwards, else NULL */
	bool has_left;	  /* set: the keys to detach were typed */
};

/* Sends body to .../exec of ref->sandbox and sets ref->process. The exit code, 0 if it was left. */
int background_exec_run(struct cli *cli, struct client *client, struct background_exec *how,
	json_t *body, struct process_ref *ref, struct err *err) must_check;
