/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/reconnect.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/terminal/interrupt.h"

#include <string.h>

#define FIRST_DELAY_MS 50
#define DELAY_MAX_MS   1000

/*
 * One that is lost sooner does not count: a daemon that takes connections only to drop them would
 * hold us for ever.
 */
#define SETTLED_MS 10000

bool reconnect_is_for(const struct err *err)
{
	if (strcmp(err->code, "interrupted") == 0)
		return false;
	return err->kind == ERR_UNAVAILABLE || err->kind == ERR_TIMEOUT || err->kind == ERR_RATE;
}

void reconnect_connected(struct reconnect *reconnect)
{
	reconnect->was_connected = true;
	reconnect->since_ms = clock_steady_ms();
}

int reconnect_delay_ms(struct reconnect *reconnect)
{
	uint64_t now_ms = clock_steady_ms();

	if (!reconnect->was_connected)
		return 0;
	if (reconnect->since_ms && now_ms - reconnect->since_ms >= SETTLED_MS)
		reconnect->deadline_ms = 0;
	reconnect->since_ms = 0;
	if (!reconnect->deadline_ms) {
		reconnect->deadline_ms = now_ms + RECONNECT_MS;
		reconnect->delay_ms = FIRST_DELAY_MS;
		return reconnect->delay_ms;
	}
	if (now_ms >= reconnect->deadline_ms)
		return 0;
	reconnect->delay_ms *= 2;
	if (reconnect->delay_ms > DELAY_MAX_MS)
		reconnect->delay_ms = DELAY_MAX_MS;
	return reconnect->delay_ms;
}

int reconnect_wait(struct reconnect *reconnect, struct client *client, int r, struct err *err)
{
	int delay_ms;

	if (!reconnect_is_for(err))
		return r;
	delay_ms = reconnect_delay_ms(reconnect);
	if (delay_ms == 0)
		return r;
	if (delay_ms == FIRST_DELAY_MS)
		cli_note("the connection to %s is lost; trying again for %d s", client_url(client),
			RECONNECT_MS / 1000);
	return interrupt_wait(client_interrupt(client), -1, 0, delay_ms, err);
}
