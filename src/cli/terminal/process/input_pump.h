/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes standard input on to a process that runs, piece by piece, while somebody else follows its
 * output.
 *
 * Nothing here waits for the process: when its input is full the piece is kept and offered again
 * later, and standard input is not read meanwhile. So a command that must get rid of its output
 * before it takes more input never holds us up.
 */
#pragma once

#include "base/buf.h"
#include "cli/process_ref.h"

struct input_pump {
	struct client *client; /* its own: the other one's request stays open */
	const struct process_ref *process;
	struct buf piece; /* read and not taken yet */
	bool at_end;	  /* of standard input */
	bool is_done;	  /* nothing more to pass on, or nobody to take it */
	bool must_wait;
	uint64_t retry_at_ms;
	int delay_ms;
};

int input_pump_init(struct input_pump *pump, const struct client *client,
	const struct process_ref *process, struct err *err) must_check;
void input_pump_fini(struct input_pump *pump);

/* What to wait for before the next step: a descriptor and a time, -1 for none. */
int input_pump_fd(const struct input_pump *pump);
int input_pump_wait_ms(const struct input_pump *pump);

/* Passes on what there is, at most one piece. */
int input_pump_step(struct input_pump *pump, struct err *err) must_check;
