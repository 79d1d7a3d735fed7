/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token that was narrowed to one path: "slb_<id of the token>_<mac>". It opens what lies below that path with the
 * owner and the scopes of its token, and nothing else, for as long as that token is good. Nothing is kept of it: the mac
 * is made of the path and of what the database knows the token by, with a key that is not in the database, so that a
 * copy of the database makes none.
 */
#pragma once

#include "auth/secret.h"
#include "base/err.h"

struct store;

#define BOUND_TOKEN_PREFIX   "slb_"
#define BOUND_TOKEN_KEY_LEN  32
#define BOUND_TOKEN_SEGMENTS 3 /* of a path that one is bound to: "/a/b/c" */

/* Of the token of that id, for a path of so many segments. ERR_NOT_FOUND without the token. */
int bound_token_make(struct store *store, const unsigned char key[BOUND_TOKEN_KEY_LEN],
	const char *token_id, const char *path, char text[SECRET_TEXT_MAX], struct err *err)
	must_check;

/* Whether a text begins as one. */
bool bound_token_is(const char *text);

/* The hash of its token, if it opens that path (NULL opens nothing); ERR_UNAUTHENTICATED. */
int bound_token_read(struct store *store, const unsigned char key[BOUND_TOKEN_KEY_LEN],
	const char *text, const char *path, unsigned char ret_hash[SECRET_HASH_LEN],
	struct err *err) must_check;
