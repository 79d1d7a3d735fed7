/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/preview_access.h"

#include "base/clock.h"
#include "core/engine/sandbox_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int preview_access_find_link(struct engine *engine, const struct sandbox_record *record,
	uint16_t port, const unsigned char hash[PREVIEW_HASH_LEN], struct preview_link *ret_link)
{
	struct sandbox_port declared;
	struct preview_link link;
	struct err ignored;

	if (!sandbox_port_find(record, port, &declared) ||
		store_preview_link_get(engine->config.store, hash, &link, &ignored) < 0 ||
		strcmp(link.sandbox_id, record->id) != 0 || link.port != declared.number)
		return -ENOENT;
	*ret_link = link;
	return 0;
}

int preview_access_find_frame(struct engine *engine, const unsigned char hash[PREVIEW_HASH_LEN],
	struct preview_link *ret_link)
{
	struct preview_link link;
	struct err ignored;

	if (store_preview_link_get(engine->config.store, hash, &link, &ignored) < 0 ||
		!link.frame_origin[0])
		return -ENOENT;
	*ret_link = link;
	return 0;
}

static bool is_owners(const struct preview_token *token, const struct sandbox_record *record)
{
	return sandbox_record_is_of(record, &token->caller.owner) &&
	       scope_allows(token->caller.scopes, SCOPE_READ);
}

int preview_access_check(struct engine *engine, const struct sandbox_record *record, uint16_t port,
	const struct preview_visitor *visitor, struct preview_grant *ret_grant)
{
	struct sandbox_port declared;
	struct preview_link link;

	if (sandbox_port_find(record, port, &declared) && declared.is_public) {
		*ret_grant = (struct preview_grant){.opener = PREVIEW_BY_ALL};
		return 0;
	}
	for (size_t i = 0; i < visitor->token_count; i++) {
		if (is_owners(&visitor->tokens[i], record)) {
			*ret_grant = visitor->tokens[i].grant;
			return 0;
		}
	}
	for (size_t i = 0; i < visitor->link_count; i++) {
		if (preview_access_find_link(engine, record, port, visitor->links[i], &link) < 0)
			continue;
		*ret_grant = (struct preview_grant){
			.opener = PREVIEW_BY_LINK, .expires_at_ms = link.expires_at_ms};
		memcpy(ret_grant->hash, visitor->links[i], PREVIEW_HASH_LEN);
		return 0;
	}
	return -EACCES;
}

bool preview_access_is_open(struct engine *engine, const struct sandbox_record *record,
	uint16_t port, const struct preview_grant *grant)
{
	struct sandbox_port declared;
	struct preview_link link;
	struct token_record token;
	struct err ignored;

	switch (grant->opener) {
	case PREVIEW_BY_LINK:
		return preview_access_find_link(engine, record, port, grant->hash, &link) == 0;
	case PREVIEW_BY_TOKEN:
		return store_token_find(engine->config.store, grant->hash, clock_wall_ms(), &token,
			       &ignored) == 0;
	case PREVIEW_BY_SIGNED:
		return true;
	default:
		return sandbox_port_find(record, port, &declared) && declared.is_public;
	}
}

/* --- links --- */

/* A link for a port without a preview would open nothing. */
static int check_port(struct sandbox *sandbox, uint16_t number, struct err *err)
{
	struct sandbox_port port;
	bool is_there;

	pthread_mutex_lock(&sandbox->state);
	is_there = sandbox_port_find(&sandbox->record, number, &port);
	pthread_mutex_unlock(&sandbox->state);
	return is_there ? 0 : sandbox_port_not_found(sandbox->id, number, err);
}

int preview_access_add_link(struct sandbox *sandbox, const struct preview_link_spec *spec,
	const unsigned char hash[PREVIEW_HASH_LEN], struct preview_link *ret_link, struct err *err)
{
	struct preview_link link = {.port = spec->port, .created_at_ms = clock_wall_ms()};
	int64_t expires_in_s = spec->expires_in_s;
	int r = check_port(sandbox, spec->port, err);

	if (r == 0 && (expires_in_s < 0 || expires_in_s > PREVIEW_LINK_MAX_S))
		r = err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field expires_in_s must be from 1 to %d", PREVIEW_LINK_MAX_S);
	if (r < 0)
		return r;
	id_new(link.created_at_ms, link.id);
	snprintf(link.sandbox_id, sizeof(link.sandbox_id), "%s", sandbox->id);
	snprintf(link.frame_origin, sizeof(link.frame_origin), "%s",
		spec->frame_origin ? spec->frame_origin : "");
	link.expires_at_ms =
		link.created_at_ms + 1000 * (expires_in_s ? expires_in_s : PREVIEW_LINK_DEFAULT_S);
	r = store_preview_link_add(sandbox->engine->config.store, &link, hash, err);
	if (r == 0)
		*ret_link = link;
	return r;
}

int preview_access_remove_link(
	struct sandbox *sandbox, uint16_t port, const char *link_id, struct err *err)
{
	int r = store_preview_link_delete(
		sandbox->engine->config.store, sandbox->id, port, link_id, err);

	if (r == 0)
		engine_note_unshared(sandbox->engine);
	return r;
}
