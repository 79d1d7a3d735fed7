/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/patience.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/interrupt.h"

#include <string.h>

#define FIRST_DELAY_MS 50
#define DELAY_MAX_MS   1000

/*
 * One that is lost sooner does not count: a daemon that takes connections only to drop them would
 * hold us for ever.
 */
#define SETTLED_MS 10000

bool patience_is_for(const struct err *err)
{
	if (strcmp(err->code, "interrupted") == 0)
		return false;
	return err->kind == ERR_UNAVAILABLE || err->kind == ERR_TIMEOUT || err->kind == ERR_RATE;
}

void patience_connected(struct patience *patience)
{
	patience->was_connected = true;
	patience->since_ms = clock_steady_ms();
}

int patience_delay_ms(struct patience *patience)
{
	uint64_t now_ms = clock_steady_ms();

	if (!patience->was_connected)
		return 0;
	if (patience->since_ms && now_ms - patience->since_ms >= SETTLED_MS)
		patience->deadline_ms = 0;
	patience->since_ms = 0;
	if (!patience->deadline_ms) {
		patience->deadline_ms = now_ms + PATIENCE_MS;
		patience->delay_ms = FIRST_DELAY_MS;
		return patience->delay_ms;
	}
	if (now_ms >= patience->deadline_ms)
		return 0;
	patience->delay_ms *= 2;
	if (patience->delay_ms > DELAY_MAX_MS)
		patience->delay_ms = DELAY_MAX_MS;
	return patience->delay_ms;
}

int patience_wait(struct patience *patience, struct client *client, int r, struct err *err)
{
	int delay_ms;

	if (!patience_is_for(err))
		return r;
	delay_ms = patience_delay_ms(patience);
	if (delay_ms == 0)
		return r;
	if (delay_ms == FIRST_DELAY_MS)
		cli_note("the connection to %s is lost; trying again for %d s", client_url(client),
			PATIENCE_MS / 1000);
	return interrupt_wait(client_interrupt(client), -1, 0, delay_ms, err);
}
