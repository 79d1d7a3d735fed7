/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview/preview_visit.h"

#include "api/preview/preview_pages.h"
#include "auth/secret.h"
#include "base/clock.h"
#include "core/preview/preview_access.h"
#include "http/server/route/guard.h"
#include "proxy/message/rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FIELDS_MAX (16u * 1024)

#define TOKENS_MAX 2 /* headers that may hold one */
#define LINKS_MAX                                                                                  \
	512 /* cookies: more of the form of a link do not fit into a head (MESSAGE_HEAD_MAX) */

/* --- links --- */

/* The secret of a link in the query of a target, at NULL if there is none. */
static struct slice query_secret(const char *target)
{
	for (const char *at = strchr(target, '?'); at; at = strchr(at + 1, '&')) {
		const char *secret = at + 1 + strlen(REWRITE_LINK);

		if (strncmp(at + 1, REWRITE_LINK, strlen(REWRITE_LINK)) == 0)
			return (struct slice){secret, strcspn(secret, "&#")};
	}
	return (struct slice){0};
}

/* The hash of what has the form of a link; false if it has not. */
static bool hash_link(struct slice secret, unsigned char hash[PREVIEW_HASH_LEN])
{
	char text[SECRET_TEXT_MAX];

	if (!secret.at || !secret_is_link(secret.at, secret.len))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)secret.len, secret.at);
	secret_hash(text, hash);
	return true;
}

/* Whether the cookie of a link can be one that no neighbouring name sets. */
static bool has_host_cookie(const struct api *api, const struct preview_target *target)
{
	return strcmp(api->preview_scheme, "https") == 0 && !target->prefix.at;
}

static const char *cookie_name(const struct api *api, const struct preview_target *target)
{
	return has_host_cookie(api, target) ? REWRITE_HOST_COOKIE : REWRITE_COOKIE;
}

/*
 * The hashes of the links in cookies; how many. Without https an app on a neighbouring name may have put cookies of
 * this name in front of ours, so all of them are tried.
 */
static size_t read_link_cookies(const struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, unsigned char hashes[LINKS_MAX][PREVIEW_HASH_LEN])
{
	struct slice header = {visit->cookie, visit->cookie ? strlen(visit->cookie) : 0}, secret;
	size_t count = 0;

	while (count < LINKS_MAX && rewrite_cookie(&header, cookie_name(api, target), &secret)) {
		if (hash_link(secret, hashes[count]))
			count++;
	}
	return count;
}

/*
 * Leads to the same address without its links. It must lead nowhere else: to a browser, two slashes in front of a path
 * make a host of it.
 */
static void answer_without_links(const struct proxy_visit *visit, struct proxy_way *way)
{
	const char *begin = visit->target + strspn(visit->target, "/\\");

	way->kind = PROXY_ANSWER;
	way->status = 302;
	way->type = "text/plain";
	way->fields = BUF_INIT(FIELDS_MAX);
	buf_append_str(&way->fields, "Location: /");
	rewrite_put_without_links(&way->fields, (struct slice){begin, strlen(begin)});
	buf_append_str(&way->fields, "\r\n");
}

/* A link was opened: it becomes a cookie of this name alone, and leaves the address. */
static void answer_link(const struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, const struct preview_link *link, struct proxy_way *way)
{
	struct slice secret = query_secret(visit->target);
	int64_t left_s = (link->expires_at_ms - clock_wall_ms()) / 1000;

	answer_without_links(visit, way);
	buf_printf(&way->fields,
		"Set-Cookie: %s=%.*s; Path=%.*s; Max-Age=%lld; HttpOnly; SameSite=Lax%s\r\n",
		cookie_name(api, target), (int)secret.len, secret.at,
		target->prefix.at ? (int)target->prefix.len : 1, visit->target,
		(long long)(left_s > 0 ? left_s : 0),
		strcmp(api->preview_scheme, "https") == 0 ? "; Secure" : "");
}

/* --- tokens --- */

/* What stands behind "Bearer", or NULL. */
static const char *bearer(const char *authorization)
{
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	return authorization + 7 + strspn(authorization + 7, " ");
}

/* Whether a text may be a token of ours; other credentials are the app's. */
static bool may_be_ours(const char *text)
{
	return text && (strncmp(text, SECRET_TOKEN_PREFIX, strlen(SECRET_TOKEN_PREFIX)) == 0 ||
			       jwt_is(text));
}

/* What a visit shows, and why the last token of ours was not valid. */
struct shown {
	struct preview_token tokens[TOKENS_MAX];
	size_t token_count;
	struct err why;
};

/*
 * Reads what may be a token; whether it is to be kept from the app, as any token of ours is. An app may well have
 * signed tokens of its own, and only the gate can tell whose they are.
 */
static bool read_token(struct api *api, const char *text, struct shown *shown)
{
	static const struct route looking = {
		.method = "GET", .path = "a preview", .scope = SCOPE_READ};
	struct preview_token *token = &shown->tokens[shown->token_count];
	struct principal principal;

	if (!may_be_ours(text))
		return false;
	if (gate_admit(&api->gate, &(struct credential){.token = text}, &looking, &principal,
		    &shown->why) < 0)
		return shown->why.kind == ERR_DENIED;
	token->caller = api_caller_of(&principal);
	token->grant = (struct preview_grant){
		.opener = jwt_is(text) ? PREVIEW_BY_SIGNED : PREVIEW_BY_TOKEN,
		.expires_at_ms = principal.expires_at_ms};
	secret_hash(text, token->grant.hash);
	shown->token_count++;
	return true;
}

/* Looks at both headers even if the first is good, because neither is for the app then. */
static void read_tokens(struct api *api, const struct proxy_visit *visit, struct shown *shown,
	struct proxy_way *way)
{
	way->hides_api_key = read_token(api, visit->api_key, shown);
	way->hides_authorization = read_token(api, bearer(visit->authorization), shown);
	if (shown->token_count > 0)
		err_explain(&shown->why, ERR_DENIED, NULL, "Use a token of its owner, or a link",
			"it is not a token of this preview's owner");
}

int preview_visit_find(struct api *api, struct engine *engine, const struct proxy_visit *visit,
	const struct preview_target *target, struct sandbox **ret_sandbox)
{
	struct proxy_way ignored_way = {0};
	struct shown shown = {0};
	struct err ignored;

	if (id_is_valid(target->id))
		return sandbox_get(engine, NULL, target->id, ret_sandbox, &ignored);
	read_tokens(api, visit, &shown, &ignored_way);
	for (size_t i = 0; i < shown.token_count; i++) {
		if (sandbox_get(engine, &shown.tokens[i].caller.owner, target->id, ret_sandbox,
			    &ignored) == 0)
			return 0;
	}
	return -ENOENT;
}

void preview_visit_find_frame(
	struct engine *engine, struct preview_target *target, struct proxy_way *way)
{
	unsigned char hash[SECRET_HASH_LEN];
	struct preview_link link;

	if (!target->frame[0])
		return;
	secret_hash(target->frame, hash);
	if (preview_access_find_frame(engine, hash, &link) < 0)
		return;
	snprintf(target->id, sizeof(target->id), "%s", link.sandbox_id);
	target->port = link.port;
	snprintf(way->frame_ancestor, sizeof(way->frame_ancestor), "%s", link.frame_origin);
}

/* --- the door --- */

static void refuse_foreign(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(
		&(struct preview_page){.status = 403,
			.code = "foreign_origin",
			.title = "Not from there",
			.message = "A page of another origin may not use this preview, and what is "
				   "for a frame is shown in no window."},
		visit->is_page, way);
}

/*
 * Tells what is wrong with the token that was shown, if one was. All of it follows from the token alone, so that nobody
 * learns from the answer whether there is such a preview.
 */
static void refuse_stranger(
	const struct proxy_visit *visit, const struct err *why, struct proxy_way *way)
{
	static const char make[] = "Its owner makes a link with: sandlot open ID PORT";
	static const char keep[] =
		"Its owner makes a link with: sandlot open ID PORT. If a link led "
		"here, its cookie did not come back: curl -L -c cookies LINK";
	bool has_token = why->kind != 0;
	char message[sizeof(why->message) + 64];

	snprintf(message, sizeof(message), "The token that was sent does not open it: %s.",
		why->message);
	preview_page_put(
		&(struct preview_page){.status = 401,
			.code = "preview_private",
			.title = "This preview is private",
			.message = has_token ? message
					     : "It opens with a link from its owner, or with a "
					       "token of its owner's.",
			.remediation = has_token && why->remedy[0] ? why->remedy
				       : visit->cookie		   ? make
								   : keep},
		visit->is_page, way);
}

/* What is not our own scheme can only be https in front of us. */
static bool is_own_origin(const struct api *api, const struct proxy_visit *visit)
{
	const char *host;

	if (!visit->origin)
		return true;
	host = guard_origin_host(visit->origin, api->preview_scheme);
	if (!host)
		host = guard_origin_host(visit->origin, "https");
	return host && strcasecmp(host, visit->host) == 0;
}

/* Whether the page that shows it inside itself is of the one other origin that may; its Referer tells. */
static bool is_allowed_ancestor(const char *ancestor, const struct proxy_visit *visit)
{
	size_t len = strlen(ancestor);

	return len > 0 && visit->referer && strncasecmp(visit->referer, ancestor, len) == 0 &&
	       (visit->referer[len] == '\0' || visit->referer[len] == '/');
}

/* Who came in stays until what opened it expires, or is revoked. */
static void let_in(const struct preview_grant *grant, struct proxy_way *way)
{
	int64_t left_ms = grant->expires_at_ms - clock_wall_ms();

	way->ends_ms = grant->expires_at_ms == 0
			       ? UINT64_MAX
			       : clock_steady_ms() + (uint64_t)(left_ms > 0 ? left_ms : 0);
	way->grant_kind = grant->opener;
	memcpy(way->grant, grant->hash, sizeof(way->grant));
}

/* Pages of other origins may not use what a cookie opens. What is for a frame is shown nowhere else. */
static bool is_foreign(
	const struct api *api, const struct proxy_visit *visit, const struct proxy_way *way)
{
	return visit->is_foreign || !is_own_origin(api, visit) ||
	       (visit->is_framed && !is_allowed_ancestor(way->frame_ancestor, visit)) ||
	       (visit->is_window && way->frame_ancestor[0]);
}

/* The hashes of the links that a visit shows; how many. */
static size_t read_links(const struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, unsigned char hashes[LINKS_MAX][PREVIEW_HASH_LEN])
{
	if (!target->frame[0])
		return read_link_cookies(api, visit, target, hashes);
	secret_hash(target->frame, hashes[0]);
	return 1;
}

static bool admit(struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, const struct sandbox_record *record,
	struct proxy_way *way)
{
	unsigned char hashes[LINKS_MAX][PREVIEW_HASH_LEN] not_cleared;
	struct shown shown = {0};
	struct preview_visitor visitor = {.tokens = shown.tokens, .links = hashes};
	struct preview_grant grant;
	struct preview_link link;

	if (record && !target->frame[0] && hash_link(query_secret(visit->target), hashes[0]) &&
		preview_access_find_link(api->engine, record, target->port, hashes[0], &link) ==
			0) {
		answer_link(api, visit, target, &link, way);
		return false;
	}
	read_tokens(api, visit, &shown, way);
	visitor.token_count = shown.token_count;
	visitor.link_count = read_links(api, visit, target, hashes);
	if (!record ||
		preview_access_check(api->engine, record, target->port, &visitor, &grant) < 0) {
		refuse_stranger(visit, &shown.why, way);
		return false;
	}
	if (grant.opener == PREVIEW_BY_LINK && is_foreign(api, visit, way)) {
		refuse_foreign(visit, way);
		return false;
	}
	let_in(&grant, way);
	return true;
}

/* A link that opens nothing any more is not for the scripts of a page that something else opened. */
bool preview_visit_check(struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, const struct sandbox_record *record,
	struct proxy_way *way)
{
	if (!admit(api, visit, target, record, way))
		return false;
	if (!visit->is_page || !query_secret(visit->target).at)
		return true;
	answer_without_links(visit, way);
	return false;
}

bool preview_visit_is_open(
	struct engine *engine, const struct sandbox_record *record, const struct proxy_way *way)
{
	struct preview_grant grant = {.opener = way->grant_kind};

	memcpy(grant.hash, way->grant, sizeof(grant.hash));
	return preview_access_is_open(engine, record, way->port, &grant);
}
