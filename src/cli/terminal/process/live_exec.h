/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command in a sandbox with its output as it comes: stdout to stdout, stderr to stderr, byte
 * for byte.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#include <jansson.h>

#define LIVE_EXEC_TIMEOUT 124 /* the exit code of timeout(1) */

/*
 * Sends body to .../exec of the sandbox; *ret_exit is what the shell should see. As_json waits for the end and prints the
 * answer instead. Mode: see below.
 */
int live_exec_run(struct client *client, const char *id, const char *mode, const json_t *body,
	bool as_json, int *ret_exit, struct err *err) must_check;

/*
 * The exit code that a result stands for: 124 after a timeout, 128+n after a signal, else the
 * command's own; -EINVAL if it holds none. `note` gets a sentence if the command did not end by
 * itself, or failed and the daemon knows something about it, else "".
 */
int live_exec_exit_code(const json_t *result, char *note, size_t note_size) must_check;

/*
 * The same for a person: the sentence goes to standard error. If the sandbox was made for the command alone and is gone
 * after it, mode is that of its network, else NULL.
 */
int live_exec_report(const json_t *result, const char *mode, int *ret_exit, struct err *err)
	must_check;

/* A change of the sandbox's network or limits that a sentence advises becomes options of a run that repeats it. */
void live_exec_advise_run(char *note, size_t size, const char *mode);
