/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-time tickets, for what a browser opens without being able to set a header: a WebSocket, an
 * EventSource. A ticket is valid for a minute, once, and for one path; it has the rights of the
 * token that asked for it. Tickets live in memory only, in a table of fixed size.
 */
#pragma once

#include "auth/secret.h"
#include "base/err.h"
#include "http/server/request/request.h"

#define TICKET_LIFE_MS	 60000
#define TICKET_PATH_MAX	 256 /* with NUL */
#define TICKETS_MAX	 1024
#define TICKETS_OF_OWNER 64

struct ticket_table;

struct ticket_table *ticket_table_new(void);
void ticket_table_free(struct ticket_table *table);

/* `now_ms` on the steady clock, good for life_ms. ERR_RATE if too many are out. */
int ticket_table_issue(struct ticket_table *table, const struct principal *principal,
	const char *path, uint64_t now_ms, uint64_t life_ms, char ticket[SECRET_TEXT_MAX],
	struct err *err) must_check;

/* Takes it out of the table, for whichever path: one that was shown is used up. ERR_UNAUTHENTICATED. */
int ticket_table_redeem(struct ticket_table *table, const char *ticket, const char *path,
	uint64_t now_ms, struct principal *ret_principal, struct err *err) must_check;
