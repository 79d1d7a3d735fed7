/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the keeper to the daemon. The keeper does not wait until the daemon reads them. */
#pragma once

#include "keeper/sandbox/sandbox_table.h"
#include "wire/keeper.h"

void reply_send(int conn, const struct keeper_answer *reply, const int *fds, size_t count);

/* Sends a result alone; err is sent if the result is negative. */
void reply_result(int conn, int result, const struct err *err);

/* Says how a sandbox ended; entry is NULL if there was no such sandbox. */
void reply_killed(int conn, const struct sandbox_entry *entry);

/* The entry of a running sandbox; else answers that it does not run, and returns NULL. */
struct sandbox_entry *reply_find_running(
	const struct sandbox_table *table, const char *id, int conn);
