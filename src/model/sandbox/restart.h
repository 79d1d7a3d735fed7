/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether and when a start command is run again that has ended. One that failed is, after a pause that
 * doubles from failure to failure; one that ended with status 0 has done what it was for.
 */
#pragma once

#include "model/process/termination.h"

#include <stdint.h>

#define RESTART_FIRST_MS 1000
#define RESTART_MAX_MS	 60000
#define RESTART_WELL_MS	 30000 /* one that ran for so long was well: the pauses begin anew */

enum restart_decision {
	RESTART_AGAIN,
	RESTART_DONE,	/* it ended with status 0 */
	RESTART_KILLED, /* a client asked for its end */
};

enum restart_decision restart_judge(enum end_reason reason, int exit_code);

/* It failed after ran_ms: counts that with its failures since it was last well, and says how long to pause. */
uint64_t restart_pause_ms(uint32_t *failures, uint64_t ran_ms);
