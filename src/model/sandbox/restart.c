/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/restart.h"

enum restart_decision restart_judge(enum end_reason reason, int exit_code)
{
	if (reason == END_KILLED)
		return RESTART_KILLED;
	return reason == END_EXITED && exit_code == 0 ? RESTART_DONE : RESTART_AGAIN;
}

uint64_t restart_pause_ms(uint32_t *failures, uint64_t ran_ms)
{
	uint64_t pause_ms = RESTART_FIRST_MS;

	if (ran_ms >= RESTART_WELL_MS)
		*failures = 0;
	for (uint32_t i = 0; i < *failures && pause_ms < RESTART_MAX_MS; i++)
		pause_ms *= 2;
	++*failures;
	return pause_ms < RESTART_MAX_MS ? pause_ms : RESTART_MAX_MS;
}
