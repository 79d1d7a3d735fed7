/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that a thread runs to its end, as the steps of a job do: it blocks, and looks now and then whether the job
 * must stop. Nothing of the process is left when it returns, and nothing of it is kept.
 */
#pragma once

#include "core/job/job.h"
#include "core/process/process.h"

struct process_wait {
	struct job *
		job; /* when it must stop the process is killed with all that it started; NULL: never */
	/* What it says; on the event loop, none after process_wait_run has returned. */
	void (*output)(void *arg, int stream, const uint8_t *data, size_t len);
	void *arg;
};

/* 0 with its end, which may be a bad one; -ECANCELED if the job must stop; ERR_UNAVAILABLE if the sandbox went. */
int process_wait_run(struct sandbox *sandbox, const struct process_spec *spec,
	const struct process_wait *wait, struct process_end *ret_end, struct err *err) must_check;
