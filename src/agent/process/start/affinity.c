/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/start/affinity.h"

#include <stddef.h>
#include <stdlib.h>

void affinity_parse(struct affinity *ret_affinity, const char *list)
{
	struct affinity affinity = {.is_bound = list && *list};

	*ret_affinity = (struct affinity){0};
	while (list && *list) {
		char *end;
		unsigned long cpu = strtoul(list, &end, 10);

		if (end == list || cpu >= CPU_SETSIZE || (*end && *end != ','))
			return;
		CPU_SET(cpu, &affinity.set);
		list = *end ? end + 1 : end;
	}
	*ret_affinity = affinity;
}
