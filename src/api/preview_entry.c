/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview_entry.h"

#include "api/preview_pages.h"
#include "auth/secret.h"
#include "base/clock.h"
#include "http/guard.h"
#include "proxy/rewrite.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COOKIES_MAX 8
#define FIELDS_MAX  (16u * 1024)

/* What opened a way: `grant_kind` of struct proxy_way. */
enum {
	BY_ALL,	   /* the port is public */
	BY_LINK,   /* whose hash is the grant */
	BY_TOKEN,  /* whose hash is the grant */
	BY_SIGNED, /* a signed token, which nothing but its end revokes */
};

/* --- links --- */

/* A link that was shown, and the secret that showed it. */
struct shown_link {
	struct slice secret;
	unsigned char hash[SECRET_HASH_LEN];
	struct preview_link link;
};

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

static bool is_link_of(struct api *api, const char *id, uint16_t port, struct slice secret,
	struct shown_link *ret_shown)
{
	struct preview_link *link = &ret_shown->link;
	char text[SECRET_TEXT_MAX];
	struct err err;

	if (secret.len == 0 || secret.len >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)secret.len, secret.at);
	secret_hash(text, ret_shown->hash);
	ret_shown->secret = secret;
	return store_preview_link_get(api->gate.store, ret_shown->hash, link, &err) == 0 &&
	       strcmp(link->sandbox_id, id) == 0 && link->port == port;
}

/* An app on a neighbouring name may have put a cookie of this name in front of ours: all of them are tried. */
static bool has_link_cookie(struct api *api, const struct proxy_visit *visit, const char *id,
	uint16_t port, struct shown_link *ret_shown)
{
	struct slice header = {visit->cookie, visit->cookie ? strlen(visit->cookie) : 0}, secret;
	unsigned tries = 0;

	while (tries++ < COOKIES_MAX && rewrite_cookie(&header, REWRITE_COOKIE, &secret)) {
		if (is_link_of(api, id, port, secret, ret_shown))
			return true;
	}
	return false;
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
	const struct preview_goal *goal, const struct shown_link *shown, struct proxy_way *way)
{
	int64_t left_s = (shown->link.expires_at_ms - clock_wall_ms()) / 1000;

	answer_without_links(visit, way);
	buf_printf(&way->fields,
		"Set-Cookie: " REWRITE_COOKIE
		"=%.*s; Path=%.*s; Max-Age=%lld; HttpOnly; SameSite=Lax%s\r\n",
		(int)shown->secret.len, shown->secret.at,
		goal->prefix.at ? (int)goal->prefix.len : 1, visit->target,
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

/* Who came in stays until what opened it expires (0: never), or is revoked. */
static void grant(unsigned kind, const unsigned char hash[SECRET_HASH_LEN], int64_t expires_at_ms,
	struct proxy_way *way)
{
	int64_t left_ms = expires_at_ms - clock_wall_ms();

	way->ends_ms = expires_at_ms == 0
			       ? UINT64_MAX
			       : clock_steady_ms() + (uint64_t)(left_ms > 0 ? left_ms : 0);
	way->grant_kind = kind;
	memcpy(way->grant, hash, SECRET_HASH_LEN);
}

/*
 * Whether a text is a token of the owner, who is then let in. Any token of ours is kept from the app: an app may well
 * have signed tokens of its own, and only the gate can tell whose they are.
 */
static bool is_owners(struct api *api, const char *text, const struct owner *owner,
	bool *ret_is_ours, struct proxy_way *way)
{
	static const struct route looking = {
		.method = "GET", .path = "a preview", .scope = SCOPE_READ};
	unsigned char hash[SECRET_HASH_LEN];
	struct principal principal;
	struct err err = {0};

	if (!may_be_ours(text))
		return false;
	if (gate_admit(&api->gate, &(struct credential){.token = text}, &looking, &principal,
		    &err) < 0) {
		*ret_is_ours = err.kind == ERR_DENIED;
		return false;
	}
	*ret_is_ours = true;
	if (strcmp(principal.organization, owner->organization) != 0 ||
		strcmp(principal.user, owner->user) != 0)
		return false;
	secret_hash(text, hash);
	grant(jwt_is(text) ? BY_SIGNED : BY_TOKEN, hash, principal.expires_at_ms, way);
	return true;
}

/* Looks at both headers even if the first is good, because neither is for the app then. */
static bool has_token(struct api *api, const struct proxy_visit *visit, const struct owner *owner,
	struct proxy_way *way)
{
	bool has_key = is_owners(api, visit->api_key, owner, &way->hides_api_key, way);
	bool has_bearer =
		is_owners(api, bearer(visit->authorization), owner, &way->hides_authorization, way);

	return has_key || has_bearer;
}

/* --- the door --- */

static void refuse_foreign(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(&(struct preview_page){.status = 403,
				 .code = "foreign_origin",
				 .title = "Not from there",
				 .message = "A page of another origin may not use this preview."},
		visit->is_page, way);
}

static void refuse_stranger(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(
		&(struct preview_page){.status = 401,
			.code = "preview_private",
			.title = "This preview is private",
			.message = "It opens with a link from its owner, or with a token.",
			.remediation = "Its owner makes a link with: sandlot open ID PORT"},
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

static bool admit(struct api *api, const struct proxy_visit *visit, const struct preview_goal *goal,
	const struct sandbox_record *record, const struct sandbox_port *port, struct proxy_way *way)
{
	struct shown_link shown;
	bool has_own_token;

	if (!record || !port) {
		refuse_stranger(visit, way);
		return false;
	}
	if (is_link_of(api, goal->id, port->number, query_secret(visit->target), &shown)) {
		answer_link(api, visit, goal, &shown, way);
		return false;
	}
	has_own_token = has_token(api, visit, &record->owner, way);
	if (port->is_public) {
		grant(BY_ALL, (unsigned char[SECRET_HASH_LEN]){0}, 0, way);
		return true;
	}
	if (has_own_token)
		return true;
	if (!has_link_cookie(api, visit, goal->id, port->number, &shown)) {
		refuse_stranger(visit, way);
		return false;
	}
	if (visit->is_foreign || !is_own_origin(api, visit)) {
		refuse_foreign(visit, way);
		return false;
	}
	grant(BY_LINK, shown.hash, shown.link.expires_at_ms, way);
	return true;
}

/* A link that opens nothing any more is not for the scripts of a page that something else opened. */
bool preview_entry_check(struct api *api, const struct proxy_visit *visit,
	const struct preview_goal *goal, const struct sandbox_record *record,
	const struct sandbox_port *port, struct proxy_way *way)
{
	if (!admit(api, visit, goal, record, port, way))
		return false;
	if (!visit->is_page || !query_secret(visit->target).at)
		return true;
	answer_without_links(visit, way);
	return false;
}

bool preview_entry_is_open(
	struct api *api, const struct sandbox_port *port, const struct proxy_way *way)
{
	struct store *store = api->gate.store;
	struct preview_link link;
	struct token_record token;
	struct err err;

	switch (way->grant_kind) {
	case BY_LINK:
		return store_preview_link_get(store, way->grant, &link, &err) == 0;
	case BY_TOKEN:
		return store_token_find(store, way->grant, clock_wall_ms(), &token, &err) == 0;
	case BY_SIGNED:
		return true;
	default:
		return port->is_public;
	}
}
