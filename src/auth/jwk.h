/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of an issuer of JSON Web Tokens, from a file: a JWK set (RFC 7517), or one public key as PEM.
 *
 * The kind of a key fixes its one algorithm: RSA is RS256, Ed25519 is EdDSA, a secret is HS256. What a
 * token says of its algorithm is only compared with that, so a public key can never serve as a secret.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jwk;
struct jwk_set;

#define JWK_FILE_MAX (256u * 1024)
#define JWK_KEYS_MAX 64
#define JWK_KID_MAX  128

/* Every key in it must be one that we can use; ERR_INVALID says which is not. */
int jwk_set_parse(const char *text, size_t len, struct jwk_set **ret_set, struct err *err)
	must_check;
void jwk_set_free(struct jwk_set *set);

/* Whether it holds a secret, so that nobody else may read the file. */
bool jwk_set_has_secret(const struct jwk_set *set);

/* The key of that name; with NULL, the only one. NULL if there is none. */
const struct jwk *jwk_set_find(const struct jwk_set *set, const char *kid);

/* "HS256", "RS256", "EdDSA". */
const char *jwk_algorithm(const struct jwk *key);

/* Whether this is the signature of the data, in constant time where that matters. */
bool jwk_verify(const struct jwk *key, const void *data, size_t len, const uint8_t *signature,
	size_t signature_len);
