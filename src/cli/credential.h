/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API token comes from: --token, SANDLOT_TOKEN, or the file that the daemon on this
 * machine wrote. The origin is kept beside it, because a refused token is mended by knowing which
 * one it was; the token itself is never printed.
 *
 * A token from a file belongs to this machine's daemon, so it is offered to loopback addresses
 * only: a mistyped --url must not carry the administrator's key to another host.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

#define CREDENTIAL_MAX 4096

struct credential {
	char token[CREDENTIAL_MAX]; /* "" if none was found */
	char origin[320]; /* "SANDLOT_TOKEN", "/var/lib/sandlot/token", or why there is none */
};

/*
 * given: the value of --token, or NULL. Fails only if a token was found that cannot be one (it
 * would break out of its header line, or is too long).
 */
int credential_find(const char *given, bool is_loopback, struct credential *ret, struct err *err)
	must_check;

/* Forgets the token. */
void credential_fini(struct credential *credential);
