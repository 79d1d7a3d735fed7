/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Web Tokens (RFC 7519) of one configured issuer, as signed compact texts. Their claims say who asks
 * and with which scopes; never `admin`, which is ours to give.
 *
 * Nothing of a token is believed before its signature. Before that only `kid`, to look a key up, and
 * `alg`, which must be that of the key, are looked at. What we do not understand and must (`crit`), a claim
 * that is there twice, and a claim of the wrong type refuse the whole.
 */
#pragma once

#include "auth/jwk.h"
#include "http/server/request/request.h"

#include <stdint.h>

#define JWT_MAX	   4096
#define JWT_SKEW_S 60 /* by which clocks may differ */

struct jwt_issuer {
	const struct jwk_set *keys;
	const char *issuer;
	const char *audience;
	/* Names of claims. */
	const char *organization;
	const char *user;
	const char *scopes; /* a text of names with spaces between, or a list of them */
};

/* Whether a token looks like one: "eyJ" is how a JSON object in base64 begins. */
bool jwt_is(const char *text);

/* ERR_UNAUTHENTICATED if it is not one of the issuer's, for us, now. */
int jwt_verify(const struct jwt_issuer *issuer, const char *text, int64_t wall_ms,
	struct principal *ret_principal, struct err *err) must_check;
