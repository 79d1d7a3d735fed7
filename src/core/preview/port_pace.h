/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the ports of a sandbox are looked at. Each look costs a fork inside, so it is worth one only when
 * something may have changed: at each tick while its processes start, end or say anything, and ever more rarely
 * while they are silent. A silent one may open a port too, so it never comes to an end.
 */
#pragma once

#include <stdbool.h>

#define PORT_PACE_TICK_MS   500
#define PORT_PACE_TICKS_MAX 8 /* between two looks */

/* Zeroed: the first tick is one to look at. */
struct port_pace {
	unsigned agent_reports; /* as of the last tick */
	unsigned pause;		/* ticks from one look to the next */
	unsigned waited;	/* ticks since the last look */
};

/* A tick; agent_reports is a number that grows whenever something happens. Whether to look now. */
bool port_pace_tick(struct port_pace *pace, unsigned agent_reports);

/* The last look has found a change: another may follow soon. */
void port_pace_quicken(struct port_pace *pace);
