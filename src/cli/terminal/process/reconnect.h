/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to go on after the connection was lost: a daemon that is restarted is back within
 * seconds, and what runs in its sandboxes does not notice.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#include <stdbool.h>
#include <stdint.h>

#define RECONNECT_MS 30000

/* All zero is a beginning: what never was connected is not waited for. */
struct reconnect {
	bool was_connected;
	uint64_t deadline_ms; /* 0: nothing was lost yet */
	uint64_t since_ms;    /* of the present connection; 0: there is none */
	int delay_ms;
};

/* Whether the failure is one that passes: no connection, or an answer that says "later". */
bool reconnect_is_for(const struct err *err);

/* To be called when a connection is there. One that has lived for a while makes it fresh. */
void reconnect_connected(struct reconnect *reconnect);

/* How long to wait before the next attempt, at least 1; 0 when the time is over. */
int reconnect_delay_ms(struct reconnect *reconnect);

/*
 * All of it for who has nothing else to wait for: 0 to try again, or the error as it was given, or
 * -EINTR for a watched signal. Tells on standard error that the connection is lost.
 */
int reconnect_wait(struct reconnect *reconnect, struct client *client, int r, struct err *err)
	must_check;
