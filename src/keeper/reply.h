/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the keeper to the daemon. Nobody waits until they are read. */
#pragma once

#include "keeper/roster.h"
#include "wire/keeper.h"

void reply_send(int conn, const struct keeper_answer *reply, const int *fds, size_t count);

/* A result alone; err counts if it is negative. */
void reply_result(int conn, int result, const struct err *err);

/* How a sandbox ended; NULL for one that was not there. */
void reply_killed(int conn, const struct held *held);
