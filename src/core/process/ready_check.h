/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a sandbox is ready for use: its template may say how that is told, by a command that succeeds or a port that
 * is listened on (`ready` of core/template/template_options.h). From the start of its start commands on this is tried
 * again and again, ever more rarely, until it is so or the time is over; then the sandbox goes on as it is. A sandbox
 * of a template that says nothing is ready as soon as it runs.
 *
 * One thread does it for all sandboxes. It only asks: it wakes nobody, and does not count as use. Nothing is written
 * down: the next daemon asks anew.
 */
#pragma once

#include "core/engine/sandbox_state.h"

#define READY_CHECK_PAUSE_MS	   50 /* before the second try; grows up to the next */
#define READY_CHECK_PAUSE_MAX_MS   2000
#define READY_CHECK_COMMAND_MAX_MS 10000 /* of one try */

struct ready_checks;

struct ready_checks *ready_checks_new(void);
/* Nothing of it runs any more. NULL is fine. */
void ready_checks_free(struct ready_checks *checks);

/* The thread. */
void *ready_check_run(void *engine);
/* Has the thread end; it is the caller's to join. */
void ready_checks_stop(struct ready_checks *checks);

/* It runs, with its start commands, or runs these anew: whether it is ready is found out from now on. life is held. */
void ready_check_begin(struct sandbox *sandbox);

/*
 * Asks one again that was ready: it is not from the first try on that fails, until one succeeds. With is_doubtful it is
 * not from now on. Nothing happens where its template says nothing, or it is being asked. life is held.
 */
void ready_check_again(struct sandbox *sandbox, bool is_doubtful);

/* It does not run any more. */
void ready_check_end(struct sandbox *sandbox);

enum ready_state {
	READY_NOT_YET, /* also of one that does not run */
	READY_YES,
	READY_GIVEN_UP, /* its time is over */
};

/* Whether its template says how that is told. */
bool ready_check_has_rule(struct sandbox *sandbox);

enum ready_state ready_check_state(struct sandbox *sandbox);
