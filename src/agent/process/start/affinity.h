/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processors that commands are bound to, so that they count as many as they have.
 *
 * The agent itself is not bound: it runs on any free processor. If it were bound it would wait for
 * a processor that a command keeps busy, and a sandbox would take a quarter of a millisecond more
 * to start and to stop.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>

struct affinity {
	bool is_bound;
	cpu_set_t set;
};

/* Parses the list ("2,5"); NULL, or a text that is no list, binds to nothing. */
void affinity_parse(struct affinity *ret_affinity, const char *list);
