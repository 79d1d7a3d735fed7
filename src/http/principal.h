/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends a request, as far as the server has to know. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Who asks; known before the handler runs. */
struct principal {
	char token_id[32]; /* empty: of a token that is not ours to revoke */
	char login_id[32]; /* of a browser's session that was begun with that token; else empty */
	char organization[64];
	char user[64];
	unsigned scopes;       /* what it may do; src/api gives them their meaning */
	bool is_operator;      /* whose requests find a place where those of others do not */
	int64_t expires_at_ms; /* on the wall clock, after which it is cut off; 0: never */
};

/* Whether it ends with the token or login of that id. */
static inline bool principal_depends_on(const struct principal *principal, const char *id)
{
	return strcmp(principal->token_id, id) == 0 || strcmp(principal->login_id, id) == 0;
}

static inline bool principal_is_over(const struct principal *principal, int64_t wall_ms)
{
	return principal->expires_at_ms > 0 && principal->expires_at_ms <= wall_ms;
}
