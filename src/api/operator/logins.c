/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of browsers (store/access/store_login.h). Whoever shows a token, or a link with a one-time code that was made with
 * one, gets a cookie that does what the token does, as long as that lasts.
 */
#include "api/operator/logins.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "base/clock.h"
#include "core/token/token_request.h"
#include "model/id.h"
#include "store/access/store_login.h"

#include <stdio.h>
#include <strings.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

struct login_body {
	const char *token;
	const char *code;
};

static const struct field rows[] = {
	{"token", FIELD_STRING, offsetof(struct login_body, token), 1, 4096, 0,
		"The token to sign in with."},
	{"code", FIELD_STRING, offsetof(struct login_body, code), 1, SECRET_TEXT_MAX, 0,
		"In its place: a ticket for /login."},
};
const struct fields logins_fields = {rows, array_len(rows)};

static json_t *login_to_json(const struct login_record *login, const char *own_id)
{
	return json_pack("{s:s, s:o, s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:s, s:s, s:b}", "id",
		login->id, "token", login->token_id[0] ? json_string(login->token_id) : json_null(),
		"owner", "organization", login->owner.organization, "user", login->owner.user,
		"scopes", api_scopes_to_json(login->scopes), "created_at",
		api_time_to_json(login->created_at_ms), "expires_at",
		api_time_to_json(login->expires_at_ms), "last_used_at",
		api_time_to_json(login->last_used_at_ms), "address", login->address, "agent",
		login->agent, "current", strcmp(login->id, own_id) == 0);
}

/* What a browser says of itself, as plain text. */
static void copy_agent(char place[LOGIN_AGENT_MAX], const char *agent)
{
	snprintf(place, LOGIN_AGENT_MAX, "%s", agent ? agent : "");
	for (char *c = place; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* The record of a new login for who was made out. */
static void draft(const struct request *req, int64_t life_ms, struct login_record *ret_login)
{
	const struct principal *principal = request_principal(req);
	int64_t now_ms = clock_wall_ms();

	*ret_login = (struct login_record){.owner = api_owner(req),
		.scopes = principal->scopes,
		.created_at_ms = now_ms,
		.last_used_at_ms = now_ms,
		.expires_at_ms = now_ms + life_ms};
	if (principal->expires_at_ms > 0 && principal->expires_at_ms < ret_login->expires_at_ms)
		ret_login->expires_at_ms = principal->expires_at_ms;
	id_new(now_ms, ret_login->id);
	snprintf(ret_login->token_id, sizeof(ret_login->token_id), "%s", principal->token_id);
	snprintf(ret_login->address, sizeof(ret_login->address), "%s", request_peer(req));
	copy_agent(ret_login->agent, request_header(req, "User-Agent"));
}

/* Makes out who shows the credential, and begins their session with the answer. */
static int begin(struct request *req, const struct api *api, const struct credential *credential,
	struct login_record *ret_login, struct err *err)
{
	unsigned char hash[SECRET_HASH_LEN];
	char secret[SECRET_TEXT_MAX];
	int r = request_identify(req, credential, err);

	if (r < 0)
		return r;
	if (!scope_allows(request_principal(req)->scopes, SCOPE_READ))
		return err_explain(err, ERR_DENIED, "missing_scope", "use a token that has it",
			"a session of a browser needs a token with the scope read");
	draft(req, api->login_life_ms, ret_login);
	secret_make("sls_", secret);
	secret_hash(secret, hash);
	r = store_login_add(api->gate.store, ret_login, hash, err);
	if (r == 0) {
		request_set_object(req, ret_login->id);
		request_answer_session(
			req, secret, (ret_login->expires_at_ms - ret_login->created_at_ms) / 1000);
	}
	explicit_bzero(secret, sizeof(secret));
	return r;
}

HANDLER(logins_create)
{
	struct login_body body = {0};
	struct credential credential;
	struct login_record login;
	int r = fields_decode(&logins_fields, request_body(req), &body, err);

	if (r < 0)
		return r;
	if (!body.token == !body.code)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"the body must have either token or code");
	credential =
		(struct credential){.token = body.token, .ticket = body.code, .path = LOGIN_PATH};
	r = begin(req, context, &credential, &login, err);
	if (r == 0)
		request_answer_json(req, 201, login_to_json(&login, login.id));
	return r;
}

static bool wants_page(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strcasestr(accept, "text/html");
}

/*
 * The one GET that changes something, because people open links. Nothing happens if a page of another site had the
 * browser follow it: it would sign somebody in as somebody else.
 */
HANDLER(logins_follow_link)
{
	const char *site = request_header(req, "Sec-Fetch-Site");
	struct credential credential = {.ticket = request_query(req, "code"), .path = LOGIN_PATH};
	struct login_record login;
	int r;

	request_set_action(req, "login.create");
	if (site && strcasecmp(site, "none") != 0 && strcasecmp(site, "same-origin") != 0)
		return err_explain(err, ERR_DENIED, "foreign_origin",
			"copy the link into the address bar of the browser",
			"a page of another site may not sign you in");
	r = begin(req, context, &credential, &login, err);
	if (r < 0 && (err->kind != ERR_UNAUTHENTICATED || !wants_page(req)))
		return r;
	request_answer_header(req, "Location", r < 0 ? LOGIN_PATH "#expired" : "/");
	request_answer_empty(req, 303);
	return 0;
}

HANDLER(logins_end_own)
{
	const struct api *api = context;
	const char *id = request_principal(req)->login_id;
	struct owner owner = api_owner(req);
	int r = id[0] ? store_login_delete(api->gate.store, &owner, id, err) : 0;

	if (r < 0)
		return r;
	request_set_object(req, id);
	if (id[0])
		request_evict(req, id);
	request_answer_session(req, NULL, 0);
	request_answer_empty(req, 204);
	return 0;
}

HANDLER(logins_get_own)
{
	const struct principal *principal = request_principal(req);

	(void)context;
	(void)err;
	request_answer_json(req, 200,
		json_pack("{s:{s:s, s:s}, s:o, s:o, s:o, s:o}", "owner", "organization",
			principal->organization, "user", principal->user, "scopes",
			api_scopes_to_json(principal->scopes), "token",
			principal->token_id[0] ? json_string(principal->token_id) : json_null(),
			"login",
			principal->login_id[0] ? json_string(principal->login_id) : json_null(),
			"expires_at", api_time_to_json(principal->expires_at_ms)));
	return 0;
}

struct listing {
	struct list_page page;
	const char *own_id;
	char last[TOKEN_ID_MAX];
};

static void list_one(const struct login_record *login, void *arg)
{
	struct listing *listing = arg;

	if (list_page_add(&listing->page, login_to_json(login, listing->own_id)))
		memcpy(listing->last, login->id, sizeof(listing->last));
}

HANDLER(logins_list)
{
	struct api *api = context;
	const char *after = request_query(req, "cursor");
	const struct caller caller = api_caller(req);
	struct listing listing = {.own_id = request_principal(req)->login_id};
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r < 0)
		return r;
	list_page_init(&listing.page, limit);
	/* One more tells whether there is a next page. */
	r = store_login_list(api->gate.store, token_request_reach(&caller), after ? after : "",
		clock_wall_ms(), (unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "logins", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(logins_end)
{
	struct api *api = context;
	const char *id = request_param(req, "login");
	const struct caller caller = api_caller(req);
	int r = store_login_delete(api->gate.store, token_request_reach(&caller), id, err);

	if (r < 0)
		return r;
	request_evict(req, id);
	request_answer_empty(req, 204);
	return 0;
}
