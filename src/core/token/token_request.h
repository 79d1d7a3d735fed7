/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens as callers ask for them: what a new one gets if nothing is said, whose a caller sees, and which
 * cannot be revoked. Secrets are made and hashed by whoever gives them out (auth/secret.h).
 */
#pragma once

#include "model/access/caller.h"
#include "store/store.h"

/* The id of the operator's token, which lives in a file of the data directory. */
#define TOKEN_REQUEST_FIRST "admin"

/* A struct of zeros asks for the defaults. */
struct token_spec {
	const char *name;	  /* NULL: none */
	const char *organization; /* NULL: the caller's, as user */
	const char *user;
	unsigned scopes;      /* 0: all but admin */
	int64_t expires_in_s; /* 0: never */
};

/* The record of a new one, with a new id. */
void token_request_draft(
	const struct caller *caller, const struct token_spec *spec, struct token_record *ret_token);

/* Whose tokens a caller may see: NULL for all. */
const struct owner *token_request_reach(const struct caller *caller);

/* ERR_NOT_FOUND if the caller sees none of that id; ERR_CONFLICT, first_token. */
int token_request_revoke(struct store *store, const struct caller *caller, const char *id,
	struct err *err) must_check;
