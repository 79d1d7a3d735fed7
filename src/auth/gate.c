/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/gate.h"

#include "auth/secret.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/access/store_login.h"

#include <string.h>

#define TOUCH_MS 60000 /* when a token was last used is written no more often */

/* For people: not worth a failed request. */
static void touch(const struct gate *gate, const struct token_record *token, int64_t now_ms)
{
	struct err err;

	if (now_ms - token->last_used_at_ms >= TOUCH_MS &&
		store_token_touch(gate->store, token->id, now_ms, &err) < 0)
		log_warning("the use of token %s is not noted: %s", token->id, err.message);
}

static int read_token(const struct gate *gate, const struct credential *credential, int64_t now_ms,
	struct principal *ret_principal, struct err *err)
{
	unsigned char hash[SECRET_HASH_LEN];
	struct token_record token;
	int r = 0;

	if (bound_token_is(credential->token))
		r = bound_token_read(gate->store, gate->bound_key, credential->token,
			credential->path, hash, err);
	else
		secret_hash(credential->token, hash);
	if (r < 0)
		return r;
	r = store_token_find(gate->store, hash, now_ms, &token, err);
	if (r < 0)
		return r;
	touch(gate, &token, now_ms);
	*ret_principal =
		(struct principal){.scopes = token.scopes, .expires_at_ms = token.expires_at_ms};
	memcpy(ret_principal->token_id, token.id, sizeof(token.id));
	memcpy(ret_principal->organization, token.owner.organization, MODEL_NAME_MAX);
	memcpy(ret_principal->user, token.owner.user, MODEL_NAME_MAX);
	return 0;
}

static void touch_login(const struct gate *gate, const struct login_record *login, int64_t now_ms)
{
	struct err err;

	if (now_ms - login->last_used_at_ms >= TOUCH_MS &&
		store_login_touch(gate->store, login->id, now_ms, &err) < 0)
		log_warning("the use of login %s is not noted: %s", login->id, err.message);
}

static int read_session(const struct gate *gate, const char *text, int64_t now_ms,
	struct principal *ret_principal, struct err *err)
{
	unsigned char hash[SECRET_HASH_LEN];
	struct login_record login;
	int r;

	secret_hash(text, hash);
	r = store_login_find(gate->store, hash, now_ms, &login, err);
	if (r < 0)
		return r;
	touch_login(gate, &login, now_ms);
	*ret_principal =
		(struct principal){.scopes = login.scopes, .expires_at_ms = login.expires_at_ms};
	memcpy(ret_principal->token_id, login.token_id, sizeof(login.token_id));
	memcpy(ret_principal->login_id, login.id, sizeof(login.id));
	memcpy(ret_principal->organization, login.owner.organization, MODEL_NAME_MAX);
	memcpy(ret_principal->user, login.owner.user, MODEL_NAME_MAX);
	return 0;
}

/* A ticket is no better than the token it was asked for with, which may be gone by now. */
static int read_ticket(const struct gate *gate, const struct credential *credential, int64_t now_ms,
	struct principal *ret_principal, struct err *err)
{
	struct principal principal;
	struct token_record token;
	int r = ticket_table_redeem(gate->tickets, credential->ticket, credential->path,
		clock_steady_ms(), &principal, err);

	if (r < 0)
		return r;
	if (principal_is_over(&principal, now_ms) ||
		(principal.token_id[0] &&
			store_token_get(gate->store, NULL, principal.token_id, &token, err) < 0))
		return err_set(err, ERR_UNAUTHENTICATED, "the ticket is not valid");
	*ret_principal = principal;
	return 0;
}

static int check_scope(
	const struct principal *principal, const struct route *route, struct err *err)
{
	char needed[SCOPE_TEXT_MAX];

	if ((route->flags & ROUTE_OPEN) ||
		(route->scope && scope_allows(principal->scopes, route->scope)))
		return 0;
	scope_format(route->scope, needed);
	return err_explain(err, ERR_DENIED, "missing_scope", "use a token that has it",
		"the token has not the scope %s, which %s %s needs", needed, route->method,
		route->path);
}

int gate_admit(const struct gate *gate, const struct credential *credential,
	const struct route *route, struct principal *ret_principal, struct err *err)
{
	int64_t now_ms = clock_wall_ms();
	struct principal principal;
	int r;

	if (credential->ticket)
		r = read_ticket(gate, credential, now_ms, &principal, err);
	else if (credential->session)
		r = read_session(gate, credential->session, now_ms, &principal, err);
	else if (gate->issuer && jwt_is(credential->token))
		r = jwt_verify(gate->issuer, credential->token, now_ms, &principal, err);
	else
		r = read_token(gate, credential, now_ms, &principal, err);
	if (r < 0)
		return r;
	principal.is_operator = scope_allows(principal.scopes, SCOPE_ADMIN);
	*ret_principal = principal;
	return check_scope(&principal, route, err);
}
