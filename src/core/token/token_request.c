/* SPDX-License-Identifier: Apache-2.0 */
#include "core/token/token_request.h"

#include "base/clock.h"
#include "model/id.h"

#include <stdio.h>
#include <string.h>

static void set_name(char place[MODEL_NAME_MAX], const char *name)
{
	if (name)
		snprintf(place, MODEL_NAME_MAX, "%s", name);
}

void token_request_draft(
	const struct caller *caller, const struct token_spec *spec, struct token_record *ret_token)
{
	*ret_token = (struct token_record){.owner = caller->owner,
		.scopes = spec->scopes ? spec->scopes : SCOPE_ORDINARY,
		.created_at_ms = clock_wall_ms()};
	id_new(ret_token->created_at_ms, ret_token->id);
	set_name(ret_token->name, spec->name);
	set_name(ret_token->owner.organization, spec->organization);
	set_name(ret_token->owner.user, spec->user);
	if (spec->expires_in_s > 0)
		ret_token->expires_at_ms = ret_token->created_at_ms + spec->expires_in_s * 1000;
}

const struct owner *token_request_reach(const struct caller *caller)
{
	return caller->scopes & SCOPE_ADMIN ? NULL : &caller->owner;
}

int token_request_revoke(
	struct store *store, const struct caller *caller, const char *id, struct err *err)
{
	struct token_record token;
	int r = store_token_get(store, token_request_reach(caller), id, &token, err);

	if (r < 0)
		return r;
	if (strcmp(id, TOKEN_REQUEST_FIRST) == 0)
		return err_explain(err, ERR_CONFLICT, "first_token",
			"remove the file `token` in the data directory and start sandlotd again",
			"the first token lives in a file and cannot be revoked from here");
	return store_token_delete(store, token_request_reach(caller), id, err);
}
