/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens. Only an administrator makes them, for any owner: if a token could make others, revoking a
 * stolen one would not end what was begun with it. Everybody sees and revokes those of their own owner.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "core/token/token_request.h"

#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define LIFE_MAX_S	   (3650ll * 86400)

struct token_body {
	const char *name;
	const char *organization;
	const char *user;
	const json_t *scopes;
	int64_t expires_in_s;
	enum field_boolean is_e2b;
};

static const char *check_name(const json_t *value)
{
	return model_name_is_valid(json_string_value(value))
		       ? NULL
		       : "must be 1 to 63 of a-z A-Z 0-9 . _ -, the first a letter or digit";
}

static const char *check_scopes(const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (!scope_find(json_string_value(one), json_string_length(one)))
			return "must hold read, run, files, manage or admin";
	}
	return NULL;
}

#define PLACE(member) offsetof(struct token_body, member)

static const struct field rows[] = {
	{"name", FIELD_STRING, PLACE(name), 1, MODEL_NAME_MAX - 1, 0, "What it is for.",
		.check = check_name},
	{"organization", FIELD_STRING, PLACE(organization), 1, MODEL_NAME_MAX - 1, 0,
		"Whose it is; by default that of whoever makes it.", .check = check_name},
	{"user", FIELD_STRING, PLACE(user), 1, MODEL_NAME_MAX - 1, 0,
		"Whose it is; by default that of whoever makes it.", .check = check_name},
	{"scopes", FIELD_STRING_LIST, PLACE(scopes), 1, 5, 0,
		"What it may do: read, run, files, manage, admin; by default all but admin.",
		.check = check_scopes},
	{"expires_in_s", FIELD_INTEGER, PLACE(expires_in_s), 1, LIFE_MAX_S, FIELD_NULLABLE,
		"Seconds after which it is refused; by default never."},
	{"e2b", FIELD_BOOLEAN, PLACE(is_e2b), 0, 0, 0,
		"Whether it has the form that clients of E2B demand: e2b_ and digits."},
};
const struct fields tokens_fields = {rows, array_len(rows)};

static json_t *token_to_json(const struct token_record *token)
{
	return json_pack("{s:s, s:o, s:{s:s, s:s}, s:o, s:o, s:o, s:o}", "id", token->id, "name",
		token->name[0] ? json_string(token->name) : json_null(), "owner", "organization",
		token->owner.organization, "user", token->owner.user, "scopes",
		api_scopes_to_json(token->scopes), "created_at",
		api_time_to_json(token->created_at_ms), "expires_at",
		api_time_to_json(token->expires_at_ms), "last_used_at",
		api_time_to_json(token->last_used_at_ms));
}

static unsigned scopes_of(const json_t *list)
{
	unsigned scopes = 0;
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		scopes |= scope_find(json_string_value(one), json_string_length(one));
	}
	return scopes;
}

/* The record of a body, with a new id. */
static int read_body(
	const struct request *req, struct token_record *ret_token, bool *ret_e2b, struct err *err)
{
	const struct caller caller = api_caller(req);
	struct token_body body = {0};
	int r;

	fields_clear(&tokens_fields, &body);
	r = fields_decode(&tokens_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	token_request_draft(&caller,
		&(struct token_spec){.name = body.name,
			.organization = body.organization,
			.user = body.user,
			.scopes = scopes_of(body.scopes),
			.expires_in_s = body.expires_in_s},
		ret_token);
	*ret_e2b = body.is_e2b == FIELD_TRUE;
	return 0;
}

HANDLER(tokens_create)
{
	struct api *api = context;
	unsigned char hash[SECRET_HASH_LEN];
	char prefix[64], secret[SECRET_TEXT_MAX];
	struct token_record token;
	json_t *answer;
	bool is_e2b;
	int r = read_body(req, &token, &is_e2b, err);

	if (r < 0)
		return r;
	snprintf(prefix, sizeof(prefix), SECRET_TOKEN_PREFIX "%s_", token.id);
	secret_make(is_e2b ? SECRET_E2B_PREFIX : prefix, secret);
	secret_hash(secret, hash);
	r = store_token_put(api->gate.store, &token, hash, err);
	if (r < 0)
		return r;
	answer = token_to_json(&token);
	json_object_set_new(answer, "token", json_string(secret));
	explicit_bzero(secret, sizeof(secret));
	request_answer_json(req, 201, answer);
	return 0;
}

struct listing {
	struct list_page page;
	char last[TOKEN_ID_MAX];
};

static void list_one(const struct token_record *token, void *arg)
{
	struct listing *listing = arg;

	if (list_page_add(&listing->page, token_to_json(token)))
		memcpy(listing->last, token->id, sizeof(listing->last));
}

HANDLER(tokens_list)
{
	struct api *api = context;
	const char *after = request_query(req, "cursor");
	const struct caller caller = api_caller(req);
	struct listing listing = {0};
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r < 0)
		return r;
	list_page_init(&listing.page, limit);
	/* One more tells whether there is a next page. */
	r = store_token_list(api->gate.store, token_request_reach(&caller), after ? after : "",
		(unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "tokens", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(tokens_get)
{
	struct api *api = context;
	const struct caller caller = api_caller(req);
	struct token_record token;
	int r = store_token_get(api->gate.store, token_request_reach(&caller),
		request_param(req, "token"), &token, err);

	if (r == 0)
		request_answer_json(req, 200, token_to_json(&token));
	return r;
}

HANDLER(tokens_revoke)
{
	struct api *api = context;
	const char *id = request_param(req, "token");
	const struct caller caller = api_caller(req);
	int r = token_request_revoke(api->gate.store, &caller, id, err);

	if (r < 0)
		return r;
	request_evict(req, id);
	atomic_fetch_add(&api->preview_generation, 1);
	request_answer_empty(req, 204);
	return 0;
}
