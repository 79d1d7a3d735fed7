/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens. Only an administrator makes them, for any owner: if a token could make others, revoking a
 * stolen one would not end what was begun with it. Everybody sees and revokes those of their own owner.
 */
#include "api/handlers.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define FIRST_TOKEN	   "admin" /* the one in the data directory (daemon/main.c) */
#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define LIFE_MAX_S	   (3650ll * 86400)

struct token_body {
	const char *name;
	const char *organization;
	const char *user;
	const json_t *scopes;
	int64_t expires_in_s;
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
};
const struct fields tokens_fields = {rows, array_len(rows)};

static json_t *scopes_to_json(unsigned scopes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < scope_count; i++) {
		if (scopes & scope_table[i].scope)
			json_array_append_new(list, json_string(scope_table[i].name));
	}
	return list;
}

static json_t *token_to_json(const struct token_record *token)
{
	return json_pack("{s:s, s:o, s:{s:s, s:s}, s:o, s:o, s:o, s:o}", "id", token->id, "name",
		token->name[0] ? json_string(token->name) : json_null(), "owner", "organization",
		token->owner.organization, "user", token->owner.user, "scopes",
		scopes_to_json(token->scopes), "created_at", api_time_to_json(token->created_at_ms),
		"expires_at", api_time_to_json(token->expires_at_ms), "last_used_at",
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

static void set_name(char place[MODEL_NAME_MAX], const char *name)
{
	if (name)
		snprintf(place, MODEL_NAME_MAX, "%s", name);
}

/* The record of a body, with a new id. */
static int read_body(const struct request *req, struct token_record *ret_token, struct err *err)
{
	struct token_record token = {.owner = api_owner(req),
		.scopes = SCOPE_ORDINARY,
		.created_at_ms = clock_wall_ms()};
	struct token_body body = {0};
	int r;

	fields_clear(&tokens_fields, &body);
	r = fields_decode(&tokens_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	id_new(token.created_at_ms, token.id);
	set_name(token.name, body.name);
	set_name(token.owner.organization, body.organization);
	set_name(token.owner.user, body.user);
	if (body.scopes)
		token.scopes = scopes_of(body.scopes);
	if (body.expires_in_s > 0)
		token.expires_at_ms = token.created_at_ms + body.expires_in_s * 1000;
	*ret_token = token;
	return 0;
}

HANDLER(tokens_create)
{
	struct api *api = context;
	unsigned char hash[SECRET_HASH_LEN];
	char prefix[64], secret[SECRET_TEXT_MAX];
	struct token_record token;
	json_t *answer;
	int r = read_body(req, &token, err);

	if (r < 0)
		return r;
	snprintf(prefix, sizeof(prefix), SECRET_TOKEN_PREFIX "%s_", token.id);
	secret_make(prefix, secret);
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

/* Whose tokens the request may see: NULL for all. */
static const struct owner *reach(const struct request *req, struct owner *owner)
{
	*owner = api_owner(req);
	return request_principal(req)->scopes & SCOPE_ADMIN ? NULL : owner;
}

struct listing {
	json_t *tokens;
	unsigned limit;
	char last[TOKEN_ID_MAX];
	bool more;
};

static void list_one(const struct token_record *token, void *arg)
{
	struct listing *listing = arg;

	if (json_array_size(listing->tokens) == listing->limit) {
		listing->more = true;
		return;
	}
	json_array_append_new(listing->tokens, token_to_json(token));
	memcpy(listing->last, token->id, sizeof(listing->last));
}

HANDLER(tokens_list)
{
	struct api *api = context;
	const char *after = request_query(req, "cursor");
	struct listing listing = {0};
	struct owner owner;
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r < 0)
		return r;
	listing.limit = (unsigned)limit;
	listing.tokens = json_array();
	/* One more tells whether there is a next page. */
	r = store_token_list(api->gate.store, reach(req, &owner), after ? after : "",
		listing.limit + 1, list_one, &listing, err);
	if (r < 0) {
		json_decref(listing.tokens);
		return r;
	}
	request_answer_json(req, 200,
		json_pack("{s:o, s:o}", "tokens", listing.tokens, "next_cursor",
			listing.more ? json_string(listing.last) : json_null()));
	return 0;
}

HANDLER(tokens_get)
{
	struct api *api = context;
	struct token_record token;
	struct owner owner;
	int r = store_token_get(
		api->gate.store, reach(req, &owner), request_param(req, "token"), &token, err);

	if (r == 0)
		request_answer_json(req, 200, token_to_json(&token));
	return r;
}

HANDLER(tokens_revoke)
{
	struct api *api = context;
	const char *id = request_param(req, "token");
	struct token_record token;
	struct owner owner;
	int r = store_token_get(api->gate.store, reach(req, &owner), id, &token, err);

	if (r == 0 && strcmp(id, FIRST_TOKEN) == 0)
		return err_explain(err, ERR_CONFLICT, "first_token",
			"remove the file `token` in the data directory and start sandlotd again",
			"the first token lives in a file and cannot be revoked from here");
	if (r == 0)
		r = store_token_delete(api->gate.store, reach(req, &owner), id, err);
	if (r < 0)
		return r;
	request_evict(req, id);
	atomic_fetch_add(&api->preview_generation, 1);
	request_answer_empty(req, 204);
	return 0;
}
