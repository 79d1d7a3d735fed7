/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logins: sessions of browsers, each begun with a token and known by the SHA-256 of its secret alone. A login has the
 * rights that its token has by now, and is gone when that is gone, replaced or expired.
 */
#pragma once

#include "model/access/scope.h"
#include "store/store.h"

#define LOGIN_ADDRESS_MAX 48
#define LOGIN_AGENT_MAX	  160
#define LOGINS_OF_OWNER	  100 /* beyond these the oldest go */

struct login_record {
	char id[TOKEN_ID_MAX];
	char token_id[TOKEN_ID_MAX]; /* empty: a signed token, which is not ours */
	struct owner owner;
	unsigned scopes; /* of enum scope */
	int64_t created_at_ms;
	int64_t expires_at_ms;		 /* its own end, or that of its token if that is earlier */
	int64_t last_used_at_ms;	 /* as precise as its caller touches it */
	char address[LOGIN_ADDRESS_MAX]; /* where it was begun */
	char agent[LOGIN_AGENT_MAX];	 /* what the browser says that it is */
};

/* Also forgets those that are over, and the owner's oldest. */
int store_login_add(struct store *store, const struct login_record *login,
	const unsigned char hash[32], struct err *err) must_check;

/* Whose secret it is; ERR_UNAUTHENTICATED if nobody's, or no longer at now_ms. */
int store_login_find(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct login_record *ret_login, struct err *err) must_check;

/* Calls each for up to limit logins in order of id, those after `after`; of an owner, or of all (NULL). */
int store_login_list(struct store *store, const struct owner *owner, const char *after,
	int64_t now_ms, unsigned limit, void (*each)(const struct login_record *login, void *arg),
	void *arg, struct err *err) must_check;

/* ERR_NOT_FOUND if the owner has none of that id. */
int store_login_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err) must_check;

/* Notes that it was used. */
int store_login_touch(struct store *store, const char *id, int64_t now_ms, struct err *err)
	must_check;
