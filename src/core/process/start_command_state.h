/* SPDX-License-Identifier: Apache-2.0 */
/* How a start command (start_command.h) fares. */
#pragma once

#include "base/err.h"
#include "model/process/process_record.h"

enum start_command_status {
	START_COMMAND_STOPPED, /* the sandbox does not run */
	START_COMMAND_RUNNING,
	START_COMMAND_WAITING, /* it failed, and is run again at next_try_at_ms */
	START_COMMAND_EXITED,  /* it ended with status 0, and is left alone */
	START_COMMAND_KILLED, /* a client ended it: it is left alone until the sandbox starts again */
};

struct start_command_state {
	enum start_command_status status;
	uint32_t process;    /* the number of the present or last one; 0: none yet */
	int64_t tried_at_ms; /* when that was started */
	uint32_t restarts;   /* since the sandbox was started */
	struct err error;    /* why the last try could not be run; its kind is ERR_NONE if it ran */
	int64_t ended_at_ms; /* of the last that ended; 0: none has */
	int exit_code;	     /* likewise */
	struct termination end; /* likewise */
	int64_t next_try_at_ms; /* 0: none is planned */
};
