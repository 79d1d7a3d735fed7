/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose signed tokens are taken, from the settings jwt-*. Read like the settings themselves, before anything
 * else is done: the file with the keys may be for root alone, and a mistake in it leaves nothing behind.
 */
#pragma once

#include "auth/jwt.h"
#include "daemon/settings.h"

struct issuer {
	struct jwk_set *keys; /* NULL: no issuer is configured */
	struct jwt_issuer rules;
};

int issuer_open(const struct settings *settings, struct issuer *ret_issuer, struct err *err)
	must_check;
void issuer_close(struct issuer *issuer);

/* What the gate needs, or NULL. */
const struct jwt_issuer *issuer_rules(const struct issuer *issuer);
