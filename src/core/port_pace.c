/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port_pace.h"

bool port_pace_tick(struct port_pace *pace, unsigned stirs)
{
	if (stirs != pace->stirs)
		port_pace_quicken(pace);
	pace->stirs = stirs;
	if (++pace->waited < pace->pause)
		return false;
	pace->waited = 0;
	pace->pause = pace->pause ? 2 * pace->pause : 1;
	if (pace->pause > PORT_PACE_TICKS_MAX)
		pace->pause = PORT_PACE_TICKS_MAX;
	return true;
}

void port_pace_quicken(struct port_pace *pace)
{
	pace->pause = 1;
}
