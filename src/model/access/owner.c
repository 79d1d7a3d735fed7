/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/owner.h"

#include "model/text_digest.h"

#include <stdio.h>
#include <string.h>

uint64_t owner_key(const struct owner *owner)
{
	char text[sizeof(*owner) + 1];

	snprintf(text, sizeof(text), "%s\n%s", owner->organization, owner->user);
	return text_digest(text);
}

bool owner_equals(const struct owner *one, const struct owner *other)
{
	return strcmp(one->organization, other->organization) == 0 &&
	       strcmp(one->user, other->user) == 0;
}

const struct owner owner_pool = {.organization = ".pool", .user = ".pool"};

bool owner_is_pool(const struct owner *owner)
{
	return owner_equals(owner, &owner_pool);
}

const struct owner owner_everybody = {.organization = ""};

bool owner_is_operator(const struct owner *owner)
{
	return strcmp(owner->organization, OWNER_OPERATOR_ORGANIZATION) == 0 &&
	       strcmp(owner->user, OWNER_OPERATOR_USER) == 0;
}
