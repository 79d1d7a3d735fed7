/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/port_pace.h"

bool port_pace_tick(struct port_pace *pace, unsigned agent_reports)
{
	if (agent_reports != pace->agent_reports)
		port_pace_quicken(pace);
	pace->agent_reports = agent_reports;
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
