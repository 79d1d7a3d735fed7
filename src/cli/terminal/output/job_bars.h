/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for a job and shows how far it is: on a terminal a bar for each layer, drawn in place; elsewhere a line
 * for each change. The job does not depend on who waits: after an interrupt it goes on.
 */
#pragma once

#include "cli/remote/client.h"

/* 0 if it succeeded; else its error, or -EINTR. */
int job_bars_wait(struct client *client, const char *id, struct err *err) must_check;
