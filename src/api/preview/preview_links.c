/* SPDX-License-Identifier: Apache-2.0 */
/* Links that open a private preview: made, listed and revoked by the owner of the sandbox. */
#include "api/handlers.h"
#include "api/list_page.h"

#include "auth/secret.h"
#include "core/preview/preview_access.h"

#include <string.h>

struct link_body {
	int64_t expires_in_s;
	const char *frame_origin;
};

/* It stands in a policy of ours, so that nothing else may be said with it. */
static const char *check_origin(const json_t *value)
{
	const char *origin = json_string_value(value);
	size_t scheme = strncmp(origin, "https://", 8) == 0  ? 8
			: strncmp(origin, "http://", 7) == 0 ? 7
							     : 0;

	if (scheme == 0 || !origin[scheme] ||
		origin[scheme +
			strspn(origin + scheme, "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]")])
		return "must be an origin such as https://app.example, in small letters and "
		       "without a path";
	return NULL;
}

static const struct field link_rows[] = {
	{"expires_in_s", FIELD_INTEGER, offsetof(struct link_body, expires_in_s), 1,
		PREVIEW_LINK_MAX_S, 0, "How long it opens the preview; a day if left out."},
	{"frame_origin", FIELD_STRING, offsetof(struct link_body, frame_origin), 1,
		PREVIEW_ORIGIN_MAX - 1, 0,
		"Origin of the page that shows the preview in a frame. The link then has a name of "
		"its own and needs no cookie, so that it works where browsers keep none for other "
		"sites; only pages of that origin can show it, and no window.",
		.check = check_origin},
};

const struct fields preview_links_fields = FIELDS(link_rows);

static json_t *link_to_json(const struct preview_link *link)
{
	return json_pack("{s:s, s:i, s:o, s:o, s:s*}", "id", link->id, "port", (int)link->port,
		"created_at", api_time_to_json(link->created_at_ms), "expires_at",
		api_time_to_json(link->expires_at_ms), "frame_origin",
		link->frame_origin[0] ? link->frame_origin : NULL);
}

/* Where a link leads: to the preview, with its secret; a frame has it for a name. */
static json_t *url_of(const struct api *api, const struct preview_link *link, const char *secret)
{
	char url[API_PREVIEW_URL_MAX];

	if (link->frame_origin[0])
		return json_sprintf("%s://%s.%s:%u/", api->preview_scheme, secret,
			api->preview_domain, api->preview_port);
	api_preview_url(api, link->sandbox_id, link->port, url);
	return json_sprintf("%s/?sandlot_link=%s", url, secret);
}

HANDLER(preview_links_create)
{
	struct api *api = context;
	struct link_body body;
	struct preview_link_spec spec = {0};
	char secret[SECRET_TEXT_MAX];
	unsigned char hash[SECRET_HASH_LEN];
	struct preview_link link;
	struct sandbox *sandbox;
	json_t *answer;
	int r;

	fields_clear(&preview_links_fields, &body);
	if ((r = fields_decode(&preview_links_fields, request_body(req), &body, err)) < 0 ||
		(r = api_port(req, &spec.port, err)) < 0 ||
		(r = api_sandbox(req, api, &sandbox, err)) < 0)
		return r;
	spec.expires_in_s = body.expires_in_s == FIELD_ABSENT ? 0 : body.expires_in_s;
	spec.frame_origin = body.frame_origin;
	if (spec.frame_origin)
		secret_make_frame(secret);
	else
		secret_make_short(SECRET_LINK_PREFIX, secret);
	secret_hash(secret, hash);
	r = preview_access_add_link(sandbox, &spec, hash, &link, err);
	if (r < 0)
		return r;
	answer = link_to_json(&link);
	json_object_set_new(answer, "url", url_of(api, &link, secret));
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
	request_answer_json(req, 200, list_page_whole("links", list));
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
