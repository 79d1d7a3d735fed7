/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate that every request passes before its handler runs: who asks (a token, a signed token of the
 * configured issuer, a ticket, the session of a browser), and whether their scopes reach the route. Whether an object is theirs is
 * decided where it is looked up: its owner is in the SQL.
 */
#pragma once

#include "auth/bound_token.h"
#include "auth/jwt.h"
#include "auth/ticket_table.h"
#include "http/server/server.h"
#include "store/store.h"

struct gate {
	struct store *store;
	struct ticket_table *tickets;
	const struct jwt_issuer *issuer; /* NULL: none is configured */
	unsigned char bound_key[BOUND_TOKEN_KEY_LEN];
};

/* ERR_UNAUTHENTICATED, or ERR_DENIED for one who is known. */
int gate_admit(const struct gate *gate, const struct credential *credential,
	const struct route *route, struct principal *ret_principal, struct err *err) must_check;
