/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/route/guard.h"

#include "base/format.h"
#include "base/number.h"
#include "http/arena.h"
#include "http/head_rules.h"
#include "http/listener.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAMES_MAX 64

struct guard {
	char *hosts[NAMES_MAX];
	unsigned count;
	unsigned own_count; /* the first ones: addresses we listen on; the rest was configured */
	const char *scheme; /* what is spoken there */
	uint16_t port;
};

static void add_host(struct guard *guard, const char *name, unsigned port)
{
	if (guard->count == NAMES_MAX)
		return;
	guard->hosts[guard->count++] = port ? mem_printf("%s:%u", name, port) : mem_strdup(name);
}

/* Whether an authority names a port: the last colon is not inside an IPv6 address's brackets. */
static bool has_port(const char *host)
{
	const char *colon = strrchr(host, ':');

	return colon && !strchr(colon, ']');
}

struct guard *guard_new(const struct listener *listener, const char *const *hosts)
{
	const char *own[] = {listener->host, "localhost", "127.0.0.1", "[::1]"};
	struct guard *guard = mem_new(sizeof(*guard));
	uint16_t port = listener->port;

	guard->scheme = listener_scheme(listener);
	guard->port = port;
	for (size_t i = 0; i < array_len(own); i++) {
		add_host(guard, own[i], port);
		if (listener_has_default_port(listener))
			add_host(guard, own[i], 0);
	}
	guard->own_count = guard->count;
	for (; hosts && *hosts; hosts++) {
		add_host(guard, *hosts, 0);
		if (!has_port(*hosts))
			add_host(guard, *hosts, port);
	}
	return guard;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	for (unsigned i = 0; i < guard->count; i++)
		free(guard->hosts[i]);
	free(guard);
}

static bool has_host(const struct guard *guard, unsigned first, const char *host)
{
	for (unsigned i = first; i < guard->count; i++)
		if (strcasecmp(guard->hosts[i], host) == 0)
			return true;
	return false;
}

static bool is_own_host(const struct guard *guard, const char *host)
{
	return has_host(guard, 0, host);
}

const char *guard_origin_host(const char *origin, const char *scheme)
{
	size_t len = strlen(scheme);

	if (strncasecmp(origin, scheme, len) != 0 || strncmp(origin + len, "://", 3) != 0)
		return NULL;
	return origin + len + 3;
}

/* What is not our own scheme can only be https in front of us, under a name that was configured. */
static bool is_own_origin(const struct guard *guard, const char *origin)
{
	const char *host = guard_origin_host(origin, guard->scheme);

	if (host)
		return is_own_host(guard, host);
	host = guard_origin_host(origin, "https");
	return host && has_host(guard, guard->own_count, host);
}

/* A WebSocket is opened by a GET, and no browser asks us first (CORS) whether a page may. */
static bool may_act(const struct headers *headers, enum method method)
{
	return (method != METHOD_GET && method != METHOD_HEAD) || headers_get(headers, "Upgrade");
}

int guard_check_source(const struct guard *guard, const struct headers *headers, enum method method,
	struct err *err)
{
	const char *host = headers_get(headers, "Host");
	const char *origin = headers_get(headers, "Origin");
	const char *site = headers_get(headers, "Sec-Fetch-Site");

	if (!host)
		return err_set(err, ERR_INVALID, "the request has no Host header");
	if (!is_own_host(guard, host))
		return err_explain(err, ERR_MISDIRECTED, NULL,
			"use the address the server listens on, or add the name to its allowed "
			"hosts",
			"the host %.100s is not served here", host);
	if (origin && !is_own_origin(guard, origin))
		return err_explain(err, ERR_DENIED, "foreign_origin", NULL,
			"a page of another origin may not use this server");
	if (site && may_act(headers, method) && strcasecmp(site, "same-origin") != 0 &&
		strcasecmp(site, "none") != 0)
		return err_explain(err, ERR_DENIED, "foreign_origin", NULL,
			"a page of another site may not change anything here");
	return 0;
}

int guard_check_server_name(
	const struct headers *headers, const struct tls_peer *tls_peer, struct err *err)
{
	const char *host = headers_get(headers, "Host");

	if (tls_peer_allows_host(tls_peer, host))
		return 0;
	return err_explain(err, ERR_MISDIRECTED, "server_name_mismatch",
		"a client or proxy must name one server in both, its TLS handshake (SNI) and Host",
		"the host %.100s is not the server that the TLS connection was opened to", host);
}

static bool is_plausible_token(const char *token)
{
	size_t len = strlen(token);

	for (size_t i = 0; i < len; i++)
		if (token[i] <= ' ' || token[i] >= 0x7f)
			return false;
	return len > 0 && len <= GUARD_TOKEN_MAX;
}

static int take_token(const char *token, const char **ret_token, struct err *err)
{
	if (!is_plausible_token(token))
		return err_explain(err, ERR_UNAUTHENTICATED, NULL,
			"the first token is in the file `token` of the data directory; "
			"\"sandlot token create\" makes others",
			"the token is not valid");
	*ret_token = token;
	return 0;
}

int guard_read_token(const struct headers *headers, const char **ret_token, struct err *err)
{
	const char *authorization = headers_get(headers, "Authorization");
	const char *key = headers_get(headers, "X-API-Key");
	const char *token = key;

	if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0) {
		token = authorization + 7;
		while (*token == ' ')
			token++;
		if (key && strcmp(key, token) != 0)
			return err_set(err, ERR_INVALID,
				"Authorization and X-API-Key hold different tokens");
	}
	if (!token)
		return err_explain(err, ERR_UNAUTHENTICATED, NULL,
			"send Authorization: Bearer <token> or X-API-Key: <token>",
			"the request has no token");
	return take_token(token, ret_token, err);
}

void guard_format_cookie(const struct guard *guard, bool is_secure, char name[GUARD_COOKIE_MAX])
{
	snprintf(name, GUARD_COOKIE_MAX, "%ssandlot_session_%u", is_secure ? "__Host-" : "",
		guard->port);
}

bool guard_is_secure(const struct guard *guard, const struct headers *headers)
{
	const char *origin = headers_get(headers, "Origin");

	return strcmp(guard->scheme, "https") == 0 ||
	       (origin && guard_origin_host(origin, "https"));
}

/* Where the value of a cookie of that name begins, in a header of them; NULL if it has none. */
static const char *find_cookie(const char *header, const char *name, size_t *ret_len)
{
	size_t name_len = strlen(name);

	for (const char *at = header; at; at = strchr(at, ';')) {
		at += strspn(at, "; \t");
		if (strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
			*ret_len = strcspn(at + name_len + 1, "; \t");
			return at + name_len + 1;
		}
	}
	return NULL;
}

/* The one that only we can have set, if there is one; others do only where we do not speak TLS ourselves. */
static const char *find_session(
	const struct guard *guard, const struct headers *headers, size_t *ret_len)
{
	const char *header = headers_get(headers, "Cookie"), *value;
	char name[GUARD_COOKIE_MAX];

	guard_format_cookie(guard, true, name);
	value = find_cookie(header, name, ret_len);
	if (value || strcmp(guard->scheme, "https") == 0)
		return value;
	guard_format_cookie(guard, false, name);
	return find_cookie(header, name, ret_len);
}

/*
 * Browsers add the cookie to whatever a page has them send here, SameSite or not: pages on other ports of this host are
 * of the same site. What acts must say that it comes from a page of ours; what reads must not say otherwise.
 */
static bool is_own_page(const struct headers *headers, enum method method)
{
	const char *site = headers_get(headers, "Sec-Fetch-Site");
	const char *origin = headers_get(headers, "Origin"), *host;

	if (site)
		return strcasecmp(site, "same-origin") == 0 ||
		       (!may_act(headers, method) && strcasecmp(site, "none") == 0);
	if (!origin)
		return !may_act(headers, method);
	host = strstr(origin, "://");
	return host && strcasecmp(host + 3, headers_get(headers, "Host")) == 0;
}

static int read_session(const struct guard *guard, const struct headers *headers,
	enum method method, struct arena *arena, const char **ret_session, struct err *err)
{
	size_t len = 0;
	const char *value = find_session(guard, headers, &len);
	const char *session = value ? arena_strndup(arena, value, len) : NULL;

	if (!session)
		return 0;
	if (!is_own_page(headers, method))
		return err_explain(err, ERR_DENIED, "foreign_origin", NULL,
			"a session counts only for requests of the console's own pages");
	if (!is_plausible_token(session))
		return err_set(err, ERR_UNAUTHENTICATED, "the session is not valid");
	*ret_session = session;
	return 0;
}

int guard_read_credential(const struct guard *guard, const struct headers *headers,
	const struct target *target, unsigned route_flags, enum method method, struct arena *arena,
	struct credential *ret_credential, struct err *err)
{
	static const char *const misplaced[] = {"token", "access_token", "api_key"};
	const char *ticket = target_query(target, "ticket");
	bool has_header =
		headers_get(headers, "Authorization") || headers_get(headers, "X-API-Key");

	for (size_t i = 0; i < array_len(misplaced); i++) {
		if (target_query(target, misplaced[i]))
			return err_explain(err, ERR_UNAUTHENTICATED, "token_in_query",
				"send it as a header, or a ticket where that cannot be",
				"a token does not belong into the query");
	}
	if (!ticket || !(route_flags & ROUTE_TICKET)) {
		int r = has_header ? 0
				   : read_session(guard, headers, method, arena,
					     &ret_credential->session, err);

		if (r < 0 || ret_credential->session)
			return r;
		/* Older ones of them send a token for E2B's own service beside it. */
		if (route_flags & ROUTE_E2B && headers_get(headers, "X-API-Key"))
			return take_token(
				headers_get(headers, "X-API-Key"), &ret_credential->token, err);
		return guard_read_token(headers, &ret_credential->token, err);
	}
	if (has_header)
		return err_set(err, ERR_INVALID, "the request has both a ticket and a token");
	if (!is_plausible_token(ticket))
		return err_set(err, ERR_UNAUTHENTICATED, "the ticket is not valid");
	ret_credential->ticket = ticket;
	return 0;
}

int guard_read_framing(
	const struct headers *headers, bool is_old, struct guard_body *ret_body, struct err *err)
{
	const char *encoding = headers_get(headers, "Transfer-Encoding");
	const char *length = headers_get(headers, "Content-Length");
	const char *expect = headers_get(headers, "Expect");
	const char *fault = head_rules_framing_fault(&(struct head_framing){.is_old = is_old,
		.coding_count = encoding != NULL,
		.length_count = length != NULL,
		.coding = encoding,
		.length = length});
	struct guard_body body = {.size = encoding ? GUARD_UNKNOWN_SIZE : 0};

	if (fault)
		return err_set(err, ERR_INVALID, "%s", fault);
	if (length)
		(void)!number_parse(length, 0, UINT64_MAX - 1, &body.size);
	body.present = body.size > 0;
	body.wants_continue = expect && strcasecmp(expect, "100-continue") == 0;
	*ret_body = body;
	return 0;
}

/* "application/json", with no parameter but charset=utf-8. */
static bool is_json(const char *type)
{
	static const char name[] = "application/json";

	if (!type || strncasecmp(type, name, sizeof(name) - 1) != 0)
		return false;
	type += sizeof(name) - 1;
	type += strspn(type, " \t");
	if (*type == '\0')
		return true;
	if (*type++ != ';')
		return false;
	type += strspn(type, " \t");
	return strcasecmp(type, "charset=utf-8") == 0 || strcasecmp(type, "charset=\"utf-8\"") == 0;
}

size_t guard_body_max(unsigned route_flags)
{
	return route_flags & ROUTE_BODY ? REQUEST_BODY_MAX : GUARD_EMPTY_MAX;
}

int guard_refuse_long_body(unsigned route_flags, struct err *err)
{
	char most[FORMAT_SIZE_LEN];

	if (!(route_flags & ROUTE_BODY))
		return err_set(err, ERR_INVALID, "this route takes no body");
	format_size(REQUEST_BODY_MAX, most);
	return err_explain(err, ERR_TOO_LARGE, NULL,
		"upload it as a file, PUT /v1/sandboxes/{id}/files, and name or run that",
		"the body is larger than %s", most);
}

int guard_check_body(unsigned route_flags, const struct headers *headers,
	const struct guard_body *body, struct err *err)
{
	const char *coding = headers_get(headers, "Content-Encoding");
	bool is_coded = coding && strcasecmp(coding, "identity") != 0;
	bool is_json_body = is_json(headers_get(headers, "Content-Type"));

	if (!body->present)
		return 0;
	if (!(route_flags & (ROUTE_BODY | ROUTE_RAW_BODY)) &&
		(is_coded || !is_json_body || (route_flags & ROUTE_WEBSOCKET)))
		return err_set(err, ERR_INVALID, "this route takes no body");
	if (is_coded)
		return err_explain(err, ERR_MEDIA_TYPE, NULL,
			"send the body without Content-Encoding",
			"the content encoding %.32s is not supported", coding);
	if (route_flags & ROUTE_RAW_BODY)
		return 0;
	if (!is_json_body && !(route_flags & ROUTE_ANY_BODY))
		return err_explain(err, ERR_MEDIA_TYPE, NULL, "send Content-Type: application/json",
			"the body must be application/json");
	if (body->size != GUARD_UNKNOWN_SIZE && body->size > guard_body_max(route_flags))
		return guard_refuse_long_body(route_flags, err);
	return 0;
}
