/* SPDX-License-Identifier: Apache-2.0 */
/* What those who watch a process (process.h) are told of it. */
#pragma once

#include "model/process/process_record.h"

#include <stddef.h>
#include <stdint.h>

enum process_outcome {
	PROCESS_RAN,	 /* it ran and ended */
	PROCESS_BAD_CWD, /* its directory could not be entered: errnum */
	PROCESS_NOT_RUN, /* it could not be executed: errnum; its output says so */
	PROCESS_REFUSED, /* it could not be set up (limits, say): errnum */
};

struct process_end {
	enum process_outcome outcome;
	int errnum;
	int exit_code; /* 128+n for a signal, 124 for a timeout, as in a shell */
	uint64_t duration_us;
	struct termination how;
};

/* All but release may be NULL. None may block. */
struct process_events {
	/* It runs, as this pid inside. */
	void (*started)(void *arg, uint32_t pid);
	/* Bytes of stdout (1), stderr (2) or the result (3, if it has that) came; of a kept one they are in its log by now. */
	void (*output)(void *arg, int stream, const uint8_t *data, size_t len);
	/* Standard input was taken: there is room for more. */
	void (*drained)(void *arg);
	/* The end of its main process. Unless `deserted` is asked for, only release follows. */
	void (*ended)(void *arg, const struct process_end *end);
	/* No process that it started is left; without survivors this is not called. */
	void (*deserted)(void *arg);
	/* The watch is over, and with it its reference of arg. */
	void (*release)(void *arg);
};
