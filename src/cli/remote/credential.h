/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API token comes from: --token, SANDLOT_TOKEN, or the file that the daemon on this
 * machine wrote. The origin is kept beside it, because a refused token is mended by knowing which
 * one it was; the token itself is never printed.
 *
 * A token from a file belongs to the daemon whose data directory it is in, and is offered to that one by its
 * socket. No address gets it, not even one of this machine: anybody can listen on a port whose daemon is dead.
 */
#pragma once

#include "base/err.h"

#define CREDENTIAL_MAX 4096

struct credential {
	char token[CREDENTIAL_MAX]; /* "" if none was found */
	char origin[320]; /* "SANDLOT_TOKEN", "/var/lib/sandlot/token", or why there is none */
};

/*
 * given: the value of --token, or NULL. data_dir: of the daemon that will get it, NULL if that is known
 * by its address alone. Fails only if a token was found that cannot be one (it
 * would break out of its header line, or is too long).
 */
int credential_find(const char *given, const char *data_dir, struct credential *ret,
	struct err *err) must_check;

/* Forgets the token. */
void credential_fini(struct credential *credential);
