/* SPDX-License-Identifier: Apache-2.0 */
/* Links that open a private preview: made, listed and revoked by the owner of the sandbox. */
#include "api/handlers.h"

#include "auth/secret.h"
#include "core/preview/preview_access.h"

struct link_body {
	int64_t expires_in_s;
};

static const struct field link_rows[] = {
	{"expires_in_s", FIELD_INTEGER, offsetof(struct link_body, expires_in_s), 1,
		PREVIEW_LINK_MAX_S, 0, "How long it opens the preview; a day if left out."},
};

const struct fields preview_links_fields = FIELDS(link_rows);

static json_t *link_to_json(const struct preview_link *link)
{
	return json_pack("{s:s, s:i, s:o, s:o}", "id", link->id, "port", (int)link->port,
		"created_at", api_time_to_json(link->created_at_ms), "expires_at",
		api_time_to_json(link->expires_at_ms));
}

HANDLER(preview_links_create)
{
	struct api *api = context;
	struct link_body body;
	char secret[SECRET_TEXT_MAX], url[API_PREVIEW_URL_MAX];
	unsigned char hash[SECRET_HASH_LEN];
	struct preview_link link;
	struct sandbox *sandbox;
	json_t *answer;
	uint16_t port;
	int r;

	secret_make_short(SECRET_LINK_PREFIX, secret);
	secret_hash(secret, hash);
	fields_clear(&preview_links_fields, &body);
	if ((r = fields_decode(&preview_links_fields, request_body(req), &body, err)) < 0 ||
		(r = api_port(req, &port, err)) < 0 ||
		(r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = preview_access_add_link(sandbox, port,
			 body.expires_in_s == FIELD_ABSENT ? 0 : body.expires_in_s, hash, &link,
			 err)) < 0)
		return r;
	api_preview_url(api, link.sandbox_id, link.port, url);
	answer = link_to_json(&link);
	json_object_set_new(answer, "url", json_sprintf("%s/?sandlot_link=%s", url, secret));
	request_answer_json(req, 201, answer);
	return 0;
}

HANDLER(preview_links_list)
{
	struct api *api = context;
	struct preview_link links[STORE_PREVIEW_LINKS_MAX];
	struct sandbox *sandbox;
	json_t *list;
	uint16_t port;
	int count, r;

	if ((r = api_port(req, &port, err)) < 0 || (r = api_sandbox(req, api, &sandbox, err)) < 0)
		return r;
	count = store_preview_link_list(
		engine_store(api->engine), sandbox_id(sandbox), port, links, array_len(links), err);
	if (count < 0)
		return count;
	list = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(list, link_to_json(&links[i]));
	request_answer_json(req, 200, json_pack("{s:o}", "links", list));
	return 0;
}

HANDLER(preview_links_delete)
{
	struct sandbox *sandbox;
	uint16_t port;
	int r;

	if ((r = api_port(req, &port, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = preview_access_remove_link(sandbox, port, request_param(req, "link"), err)) <
			0)
		return r;
	request_answer_empty(req, 204);
	return 0;
}
