/* SPDX-License-Identifier: Apache-2.0 */
/* A command of a launch in its sandbox, run to its end on the thread of the launch's job. */
#pragma once

#include "base/buf.h"
#include "core/engine/sandbox_handle.h"
#include "core/job/job.h"
#include "model/text_map.h"

#define SANDBOX_COMMAND_TAIL 4000 /* bytes of its last output that are kept */

struct sandbox_command {
	const char *line; /* for /bin/sh */
	const char *cwd;
	struct text_map env;
	const char *input;   /* NULL: none */
	uint64_t timeout_ms; /* it is ended then with all that it started */
	struct buf *
		output; /* what it says goes there and is not told; NULL: it is told line by line */
	void (*told)(void *arg, const char *line); /* of any thread; the line is printable */
	void *arg;
};

struct sandbox_command_end {
	int exit_code;
	bool is_timeout;
	struct termination how;
	char tail[SANDBOX_COMMAND_TAIL + 1];
};

/* 0 when it has ended, well or not; -ECANCELED if the job must stop. The sandbox is woken if need be. */
int sandbox_command_run(struct sandbox *sandbox, struct job *job,
	const struct sandbox_command *command, struct sandbox_command_end *ret_end, struct err *err)
	must_check;
