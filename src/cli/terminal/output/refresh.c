/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/refresh.h"

#include "cli/terminal/interrupt.h"

#include <stdio.h>
#include <unistd.h>

#define HOME_AND_CLEAR "\033[H\033[J"

int refresh_run(struct client *client, refresh_fn show, void *arg, struct err *err)
{
	struct interrupt *interrupt = client_interrupt(client);
	bool in_place = isatty(STDOUT_FILENO);
	int r = interrupt_hold(interrupt, err);

	interrupt_watch(interrupt, true);
	while (r == 0) {
		if (in_place)
			fputs(HOME_AND_CLEAR, stdout);
		r = show(arg, err);
		if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
			r = err_sys(err, "write standard output");
		if (r == 0)
			r = interrupt_wait(interrupt, -1, 0, REFRESH_MS, err);
	}
	return r;
}
