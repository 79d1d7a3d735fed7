/* SPDX-License-Identifier: Apache-2.0 */
/* Signals by name. In a header, because only the C library of the daemon and the command line knows the names. */
#pragma once

#include <signal.h>
#include <string.h>

/* The number of "SIGINT" or "INT"; 0 if it is no signal. */
static inline int signal_name_parse(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}
