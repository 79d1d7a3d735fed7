/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/jwt.h"

#include "auth/base64url.h"
#include "http/server/request/body.h"
#include "model/access/scope.h"
#include "model/sandbox/sandbox_record.h"

#include <stdio.h>
#include <string.h>

#define TIME_MAX 253402300800.0 /* the year 10000 */

static int refuse(struct err *err, const char *why)
{
	return err_explain(err, ERR_UNAUTHENTICATED, "token_refused", NULL,
		"the signed token is not valid: %s", why);
}

bool jwt_is(const char *text)
{
	return strncmp(text, "eyJ", 3) == 0;
}

/* A part of the text as a JSON object. */
static int read_part(const char *text, size_t len, json_t **ret_object, struct err *err)
{
	uint8_t data[JWT_MAX];
	ssize_t size = base64url_decode(text, len, data);
	struct err ignored;

	if (size < 0 || body_parse((const char *)data, (size_t)size, ret_object, &ignored) < 0)
		return refuse(err, "it is malformed");
	return 0;
}

/* The key that the header names, if it asks for nothing but what that key does; or NULL. */
static const struct jwk *find_key(const struct jwt_issuer *issuer, const json_t *header)
{
	const char *algorithm = json_string_value(json_object_get(header, "alg"));
	const json_t *kid = json_object_get(header, "kid");
	const struct jwk *key;

	if (json_object_get(header, "crit") || (kid && !json_is_string(kid)))
		return NULL;
	key = jwk_set_find(issuer->keys, json_string_value(kid));
	return key && algorithm && strcmp(algorithm, jwk_algorithm(key)) == 0 ? key : NULL;
}

static int check_signature(
	const struct jwk *key, const char *text, const char *signature, struct err *err)
{
	uint8_t data[JWT_MAX];
	ssize_t size = base64url_decode(signature, strlen(signature), data);

	/* What is signed is all before the second dot. */
	if (size <= 0 || !jwk_verify(key, text, (size_t)(signature - 1 - text), data, (size_t)size))
		return refuse(err, "its signature is wrong");
	return 0;
}

static bool is_for(const json_t *audience, const char *us)
{
	const json_t *one;
	size_t i;

	if (json_is_string(audience))
		return strcmp(json_string_value(audience), us) == 0;
	json_array_foreach((json_t *)audience, i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), us) == 0)
			return true;
	}
	return false;
}

static bool is_time(const json_t *value)
{
	return json_is_number(value) && json_number_value(value) >= 0 &&
	       json_number_value(value) < TIME_MAX;
}

static int check_claims(const struct jwt_issuer *issuer, const json_t *claims, int64_t wall_ms,
	int64_t *ret_expires_at_ms, struct err *err)
{
	const char *from = json_string_value(json_object_get(claims, "iss"));
	const json_t *expires = json_object_get(claims, "exp");
	const json_t *begins = json_object_get(claims, "nbf");
	int64_t until_ms;

	if (!from || strcmp(from, issuer->issuer) != 0)
		return refuse(err, "it is from another issuer");
	if (!is_for(json_object_get(claims, "aud"), issuer->audience))
		return refuse(err, "it is for another audience");
	if (!is_time(expires) || (begins && !is_time(begins)))
		return refuse(err, "it does not say when it ends");
	until_ms = (int64_t)(json_number_value(expires) * 1000) + JWT_SKEW_S * 1000;
	if (until_ms <= wall_ms)
		return refuse(err, "it has expired");
	if (begins && json_number_value(begins) * 1000 > (double)(wall_ms + JWT_SKEW_S * 1000))
		return refuse(err, "its time has not come");
	*ret_expires_at_ms = until_ms;
	return 0;
}

static int read_name(
	const json_t *claims, const char *claim, char name[MODEL_NAME_MAX], struct err *err)
{
	const char *value = json_string_value(json_object_get(claims, claim));

	if (!value || !model_name_is_valid(value))
		return err_explain(err, ERR_UNAUTHENTICATED, "token_refused",
			"1 to 63 letters, digits, dots, dashes or underscores",
			"the signed token is not valid: its claim %.32s is no name for an owner",
			claim);
	snprintf(name, MODEL_NAME_MAX, "%s", value);
	return 0;
}

/* Issuers give out scopes for others too, so names that are not ours are passed over. */
static unsigned read_scopes(const json_t *value)
{
	unsigned scopes = 0;
	const json_t *one;
	size_t i;

	if (json_is_string(value))
		scopes = scope_parse(json_string_value(value));
	json_array_foreach((json_t *)value, i, one)
	{
		if (json_is_string(one))
			scopes |= scope_find(json_string_value(one), json_string_length(one));
	}
	return scopes & SCOPE_ORDINARY;
}

static int read_claims(const struct jwt_issuer *issuer, const char *text, size_t len,
	int64_t wall_ms, struct principal *ret_principal, struct err *err)
{
	struct principal principal = {0};
	json_auto_t *claims = NULL;
	int r;

	if ((r = read_part(text, len, &claims, err)) < 0 ||
		(r = check_claims(issuer, claims, wall_ms, &principal.expires_at_ms, err)) < 0 ||
		(r = read_name(claims, issuer->organization, principal.organization, err)) < 0 ||
		(r = read_name(claims, issuer->user, principal.user, err)) < 0)
		return r;
	principal.scopes = read_scopes(json_object_get(claims, issuer->scopes));
	*ret_principal = principal;
	return 0;
}

int jwt_verify(const struct jwt_issuer *issuer, const char *text, int64_t wall_ms,
	struct principal *ret_principal, struct err *err)
{
	const char *payload = strchr(text, '.'), *signature;
	json_auto_t *header = NULL;
	const struct jwk *key;
	int r;

	signature = payload ? strchr(payload + 1, '.') : NULL;
	if (!signature || strlen(text) >= JWT_MAX || strchr(signature + 1, '.'))
		return refuse(err, "it is malformed");
	payload++;
	signature++;
	r = read_part(text, (size_t)(payload - 1 - text), &header, err);
	if (r < 0)
		return r;
	key = find_key(issuer, header);
	if (!key)
		return refuse(err, "it is not signed with a key of the issuer");
	r = check_signature(key, text, signature, err);
	if (r < 0)
		return r;
	return read_claims(
		issuer, payload, (size_t)(signature - 1 - payload), wall_ms, ret_principal, err);
}
