/* SPDX-License-Identifier: Apache-2.0 */
/* Whose something is, where owners share what there is (base/share_pool.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MODEL_NAME_MAX 64 /* organization, user, project, template: with NUL */

struct owner {
	char organization[MODEL_NAME_MAX];
	char user[MODEL_NAME_MAX];
};

/* Whose the first token is, which the daemon makes itself. */
#define OWNER_OPERATOR_ORGANIZATION "default"
#define OWNER_OPERATOR_USER	    "admin"

/* A number that stands for the owner; nobody can choose names that meet another's. Never 0. */
uint64_t owner_key(const struct owner *owner);

bool owner_equals(const struct owner *one, const struct owner *other);

/* Whose the sandboxes are that wait in pools (core/pool/pool.h): no token and no request can name this owner. */
extern const struct owner owner_pool;
bool owner_is_pool(const struct owner *owner);

/* Whose the templates are that the operator has shared with everybody: both names are empty, and no token has them. */
extern const struct owner owner_everybody;

/* For what belongs to no request, whose scope would tell. */
bool owner_is_operator(const struct owner *owner);
