/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/message/rewrite.h"
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TOKEN_PREFIX "slt_"

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_is_like(name, names[i]))
			return true;
	}
	return false;
}

/* Only between two hops; we make our own. */
static bool is_hop(const struct message *message, struct slice name)
{
	static const char *const names[] = {"Connection", "Keep-Alive", "Proxy-Connection",
		"Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding",
		"Content-Length", "Upgrade", "HTTP2-Settings"};
	char text[64];

	if (is_one_of(name, names, array_len(names)))
		return true;
	if (name.len >= sizeof(text))
		return false;
	memcpy(text, name.at, name.len);
	text[name.len] = '\0';
	return message_lists(message, "Connection", text);
}

static void put_field(struct buf *out, struct slice name, struct slice value)
{
	buf_append(out, name.at, name.len);
	buf_append_str(out, ": ");
	buf_append(out, value.at, value.len);
	buf_append_str(out, "\r\n");
}

void rewrite_put_without_links(struct buf *out, struct slice address)
{
	const char *end = address.at + address.len, *at = memchr(address.at, '?', address.len);
	char before = '?';

	buf_append(out, address.at, at ? (size_t)(at - address.at) : address.len);
	while (at && at < end) {
		const char *field = at + 1, *next = memchr(field, '&', (size_t)(end - field));
		struct slice pair = {field, (size_t)((next ? next : end) - field)};

		if (!slice_begins(pair, REWRITE_LINK)) {
			buf_append(out, &before, 1);
			buf_append(out, pair.at, pair.len);
			before = '&';
		}
		at = next;
	}
}

/* --- requests --- */

/* What a client may say about itself, or about others, is ours to say. */
static bool is_claim(struct slice name)
{
	static const char *const names[] = {"Host", "Forwarded", "X-Forwarded-For",
		"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix",
		"X-Forwarded-Server", "X-Real-IP", "X-Original-URL", "X-Rewrite-URL",
		"E2B-Traffic-Access-Token"};

	return is_one_of(name, names, array_len(names));
}

/* Those that were found good, and those that look like ours. */
static bool is_our_credential(const struct rewrite *rewrite, struct slice name, struct slice value)
{
	if (slice_is_like(name, "X-API-Key"))
		return rewrite->hides_api_key || slice_begins(value, TOKEN_PREFIX);
	return slice_is_like(name, "Authorization") &&
	       (rewrite->hides_authorization ||
		       (strncasecmp(value.at, "Bearer", 6) == 0 && strstr(value.at, TOKEN_PREFIX)));
}

/* Takes the next "name=value" off a Cookie header. */
static bool next_cookie(struct slice *rest, struct slice *ret_pair)
{
	const char *end;

	while (rest->len > 0 && strchr("; \t", rest->at[0]))
		*rest = (struct slice){rest->at + 1, rest->len - 1};
	if (rest->len == 0)
		return false;
	end = memchr(rest->at, ';', rest->len);
	*ret_pair = (struct slice){rest->at, end ? (size_t)(end - rest->at) : rest->len};
	*rest = (struct slice){rest->at + ret_pair->len, rest->len - ret_pair->len};
	return true;
}

static bool is_cookie(struct slice pair, const char *name)
{
	size_t len = strlen(name);

	return pair.len > len && memcmp(pair.at, name, len) == 0 && pair.at[len] == '=';
}

/* Of the console (http/server/route/guard.h), on whatever port: browsers send it to every port of its host. */
static bool is_session(struct slice pair)
{
	return slice_begins(pair, REWRITE_SESSION) || slice_begins(pair, "__Host-" REWRITE_SESSION);
}

bool rewrite_cookie(struct slice *rest, const char *name, struct slice *ret_value)
{
	size_t skipped = strlen(name) + 1;
	struct slice pair;

	while (next_cookie(rest, &pair)) {
		if (!is_cookie(pair, name))
			continue;
		*ret_value = (struct slice){pair.at + skipped, pair.len - skipped};
		return true;
	}
	return false;
}

/* Those of an origin that is shared belong to others, too, and browsers send them to every port of a host. */
static void put_cookies(struct buf *out, const struct rewrite *rewrite, struct slice header)
{
	const char *before = "Cookie: ";
	struct slice pair;

	while (!rewrite->is_confined && next_cookie(&header, &pair)) {
		if (is_cookie(pair, REWRITE_COOKIE) || is_cookie(pair, REWRITE_HOST_COOKIE) ||
			is_session(pair))
			continue;
		buf_append_str(out, before);
		buf_append(out, pair.at, pair.len);
		before = "; ";
	}
	if (before[0] == ';')
		buf_append_str(out, "\r\n");
}

/* "http://name:port" of the preview itself in front of a value: its length, or 0. */
static size_t own_origin(const struct rewrite *rewrite, struct slice value)
{
	char origin[320];
	size_t len =
		format_append(origin, sizeof(origin), 0, "%s://%s", rewrite->scheme, rewrite->host);

	/* A name as long as that is none of ours, and may have been cut. */
	if (len == sizeof(origin) - 1 || value.len < len || strncasecmp(value.at, origin, len) != 0)
		return 0;
	return value.len == len || value.at[len] == '/' ? len : 0;
}

/* Origin and Referer of the preview itself become those of the app's own address. */
static void put_origin(
	struct buf *out, const struct rewrite *rewrite, const struct message_field *field)
{
	size_t own = own_origin(rewrite, field->value);

	buf_append(out, field->name.at, field->name.len);
	buf_append_str(out, ": ");
	if (own > 0)
		buf_printf(out, "http://localhost:%" PRIu16, rewrite->port);
	rewrite_put_without_links(
		out, (struct slice){field->value.at + own, field->value.len - own});
	buf_append_str(out, "\r\n");
}

static void put_target(
	const struct message *request, const struct rewrite *rewrite, struct buf *out)
{
	struct slice rest = {request->target.at + rewrite->prefix.len,
		request->target.len - rewrite->prefix.len};

	buf_append_str(out, rewrite->put_prefix ? rewrite->put_prefix : "");
	if (rest.len == 0 || rest.at[0] != '/')
		buf_append_str(out, "/");
	rewrite_put_without_links(out, rest);
}

void rewrite_request(const struct message *request, const struct rewrite *rewrite, bool is_upgrade,
	struct buf *out)
{
	buf_printf(out, "%s ", request->method);
	put_target(request, rewrite, out);
	buf_printf(out, " HTTP/1.1\r\nHost: localhost:%" PRIu16 "\r\n", rewrite->port);
	buf_append(out, rewrite->put_fields.at, rewrite->put_fields.len);
	for (size_t i = 0; i < request->field_count; i++) {
		const struct message_field *field = &request->fields[i];

		if (is_hop(request, field->name) || is_claim(field->name) ||
			is_our_credential(rewrite, field->name, field->value))
			continue;
		if (slice_is_like(field->name, "Cookie"))
			put_cookies(out, rewrite, field->value);
		else if (slice_is_like(field->name, "Origin") ||
			 slice_is_like(field->name, "Referer"))
			put_origin(out, rewrite, field);
		else
			put_field(out, field->name, field->value);
	}
	buf_printf(out, "X-Forwarded-For: %s\r\nX-Forwarded-Host: %s\r\nX-Forwarded-Proto: %s\r\n",
		rewrite->client, rewrite->host, rewrite->scheme);
	if (rewrite->prefix.len > 0)
		buf_printf(out, "X-Forwarded-Prefix: %.*s\r\n", (int)rewrite->prefix.len,
			rewrite->prefix.at);
	if (is_upgrade)
		buf_append_str(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	if (request->is_chunked)
		buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	else if (request->has_length)
		buf_printf(out, "Content-Length: %" PRIu64 "\r\n", request->length);
	buf_append_str(out, "\r\n");
}

/* --- answers --- */

/* What reaches further than the answer's own page. */
static bool is_overreaching(struct slice name)
{
	static const char *const names[] = {"Strict-Transport-Security", "Clear-Site-Data",
		"Alt-Svc", "Public-Key-Pins", "Service-Worker-Allowed", "Origin-Agent-Cluster",
		"X-Accel-Redirect", "X-Sendfile", "Expect-CT", "NEL", "Report-To",
		"Reporting-Endpoints"};

	return is_one_of(name, names, array_len(names));
}

static bool is_attribute(struct slice attribute, const char *name)
{
	size_t len = strlen(name);

	return attribute.len >= len && strncasecmp(attribute.at, name, len) == 0 &&
	       (attribute.len == len || strchr("= \t", attribute.at[len]));
}

/* Whether browsers take cookies with Secure from this name: they take localhost for safe. */
static bool takes_secure_cookies(const struct rewrite *rewrite)
{
	static const char local[] = ".localhost";
	size_t len = strcspn(rewrite->host, ":");

	return strcmp(rewrite->scheme, "https") == 0 ||
	       (len > strlen(local) &&
		       strncasecmp(rewrite->host + len - strlen(local), local, strlen(local)) == 0);
}

/* Within a frame of another site, browsers keep a cookie only if it is for pages of that site alone (CHIPS). */
static bool makes_partitioned(const struct rewrite *rewrite)
{
	return rewrite->frame_ancestor && takes_secure_cookies(rewrite);
}

static bool is_partition(struct slice attribute)
{
	return is_attribute(attribute, "SameSite") || is_attribute(attribute, "Secure") ||
	       is_attribute(attribute, "Partitioned");
}

/* A cookie stays with this name alone, and is none of ours. One without a name (=x) is sent back as what follows. */
static void put_set_cookie(
	struct buf *out, const struct rewrite *rewrite, const struct message_field *field)
{
	struct slice rest = field->value, part;

	while (rest.len > 0 && strchr("= \t", rest.at[0]))
		rest = (struct slice){rest.at + 1, rest.len - 1};
	if (rewrite->is_confined || !next_cookie(&rest, &part) ||
		slice_begins(part, REWRITE_COOKIE) || slice_begins(part, REWRITE_HOST_COOKIE) ||
		is_session(part))
		return;
	buf_append(out, field->name.at, field->name.len);
	buf_append_str(out, ": ");
	buf_append(out, part.at, part.len);
	while (next_cookie(&rest, &part)) {
		if (is_attribute(part, "Domain") ||
			(makes_partitioned(rewrite) && is_partition(part)))
			continue;
		buf_append_str(out, "; ");
		buf_append(out, part.at, part.len);
	}
	if (makes_partitioned(rewrite))
		buf_append_str(out, "; SameSite=None; Secure; Partitioned");
	buf_append_str(out, "\r\n");
}

/* A policy without what it says of frames. */
static void put_policy_for_frame(struct buf *out, const struct message_field *field)
{
	struct slice rest = field->value, part;

	buf_append(out, field->name.at, field->name.len);
	buf_append_str(out, ":");
	while (next_cookie(&rest, &part)) {
		if (is_attribute(part, "frame-ancestors"))
			continue;
		buf_append_str(out, " ");
		buf_append(out, part.at, part.len);
		buf_append_str(out, ";");
	}
	buf_append_str(out, "\r\n");
}

/* The app's own address in front of a value: its length, or 0. */
static size_t app_origin(const struct rewrite *rewrite, struct slice value)
{
	static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]", "0.0.0.0"};

	for (size_t i = 0; i < array_len(hosts); i++) {
		char origin[64];
		size_t len = format_append(
			origin, sizeof(origin), 0, "http://%s:%" PRIu16, hosts[i], rewrite->port);

		if (slice_begins(value, origin) &&
			(value.len == len || value.at[len] == '/' || value.at[len] == '?'))
			return len;
	}
	return 0;
}

static bool is_path(struct slice value)
{
	return value.len > 0 && value.at[0] == '/' && (value.len == 1 || value.at[1] != '/');
}

/* Whether a path lies below the prefix already: apps that believe X-Forwarded-Prefix put it there themselves. */
static bool has_prefix(const struct rewrite *rewrite, struct slice path)
{
	size_t len = rewrite->prefix.len;

	return len > 0 && path.len >= len && memcmp(path.at, rewrite->prefix.at, len) == 0 &&
	       (path.len == len || path.at[len] == '/' || path.at[len] == '?');
}

/* Where the app sends the browser: what it believes to be its own address becomes that of the preview. */
static void put_location(
	struct buf *out, const struct rewrite *rewrite, const struct message_field *field)
{
	size_t app = app_origin(rewrite, field->value);
	struct slice path = {field->value.at + app, field->value.len - app};

	buf_append(out, field->name.at, field->name.len);
	buf_append_str(out, ": ");
	if (app > 0)
		buf_printf(out, "%s://%s", rewrite->scheme, rewrite->host);
	if ((app > 0 || is_path(path)) && !has_prefix(rewrite, path))
		buf_append(out, rewrite->prefix.at, rewrite->prefix.len);
	buf_append(out, path.at, path.len);
	buf_append_str(out, "\r\n");
}

/* Which origin may read it. A page by path has none that it could be allowed by (see put_confinement). */
static void put_allowed_origin(
	struct buf *out, const struct rewrite *rewrite, const struct message_field *field)
{
	if (rewrite->is_confined)
		return;
	if (app_origin(rewrite, field->value) == field->value.len)
		buf_printf(out, "%.*s: %s://%s\r\n", (int)field->name.len, field->name.at,
			rewrite->scheme, rewrite->host);
	else
		put_field(out, field->name, field->value);
}

static void put_answer_field(
	struct buf *out, const struct rewrite *rewrite, const struct message_field *field)
{
	if (slice_is_like(field->name, "Set-Cookie"))
		put_set_cookie(out, rewrite, field);
	else if (slice_is_like(field->name, "Location"))
		put_location(out, rewrite, field);
	else if (slice_is_like(field->name, "Access-Control-Allow-Origin"))
		put_allowed_origin(out, rewrite, field);
	else if (rewrite->frame_ancestor && slice_is_like(field->name, "Content-Security-Policy"))
		put_policy_for_frame(out, field);
	else
		put_field(out, field->name, field->value);
}

/*
 * The page is given an origin of its own, which nobody else has, so that it reads nothing of its neighbours. But then its
 * own scripts and data are of another origin too; what all may see it may read nevertheless. Its styles and modules say
 * where they lie, so that what they ask for at the root is found; the page itself never does, having no origin.
 */
static void put_confinement(
	struct buf *out, const struct rewrite *rewrite, const struct message *response)
{
	buf_append_str(out, "Content-Security-Policy: sandbox allow-scripts allow-forms "
			    "allow-popups allow-modals allow-downloads\r\n");
	if (!rewrite->is_for_all)
		return;
	buf_append_str(out, "Access-Control-Allow-Origin: *\r\n");
	if (!message_get(response, "Referrer-Policy").at)
		buf_append_str(out, "Referrer-Policy: no-referrer-when-downgrade\r\n");
}

void rewrite_put_frame_policy(struct buf *out, const char *ancestor)
{
	buf_printf(out, "Content-Security-Policy: frame-ancestors 'self'%s%s\r\n",
		ancestor ? " " : "", ancestor ? ancestor : "");
	/* For browsers that know nothing else; there is no way to name an origin to them. */
	if (!ancestor)
		buf_append_str(out, "X-Frame-Options: SAMEORIGIN\r\n");
}

/*
 * Two of these fields may be read in either way: that of the app goes, unless it is the stricter one. The owner asked
 * for a frame; what the app says against frames would be against this one.
 */
static bool is_replaced(const struct rewrite *rewrite, const struct message_field *field)
{
	if (rewrite->frame_ancestor)
		return slice_is_like(field->name, "X-Frame-Options") ||
		       slice_is_like(field->name, "Referrer-Policy");
	return !rewrite->is_for_all && slice_is_like(field->name, "X-Frame-Options") &&
	       !slice_is_like(field->value, "DENY");
}

static void put_frame_policy(
	struct buf *out, const struct rewrite *rewrite, const struct message *response)
{
	/* The name of a frame opens it, so that no other site is to read it in a Referer. */
	if (rewrite->frame_ancestor)
		buf_append_str(out, "Referrer-Policy: same-origin\r\n");
	/* Where there is a policy, browsers pass over the field. */
	if (!rewrite->frame_ancestor &&
		slice_is_like(message_get(response, "X-Frame-Options"), "DENY"))
		buf_append_str(out, "Content-Security-Policy: frame-ancestors 'none'\r\n");
	else
		rewrite_put_frame_policy(out, rewrite->frame_ancestor);
}

void rewrite_response(const struct message *response, const struct rewrite *rewrite, bool in_chunks,
	bool close, struct buf *out)
{
	unsigned status = response->status;
	bool is_upgrade = status == 101;

	buf_printf(out, "HTTP/1.1 %03u %.*s\r\n", status, (int)response->reason.len,
		response->reason.at ? response->reason.at : "");
	for (size_t i = 0; i < response->field_count; i++) {
		const struct message_field *field = &response->fields[i];

		if (!is_hop(response, field->name) && !is_overreaching(field->name) &&
			!is_replaced(rewrite, field))
			put_answer_field(out, rewrite, field);
	}
	/* A name of its own is nobody else's, so what is said of it concerns this server alone. */
	if (!rewrite->is_confined && strcmp(rewrite->scheme, "https") == 0)
		buf_append_str(out, "Strict-Transport-Security: max-age=86400\r\n");
	if (rewrite->is_confined)
		put_confinement(out, rewrite, response);
	if (!rewrite->is_for_all && !is_upgrade)
		put_frame_policy(out, rewrite, response);
	if (is_upgrade)
		buf_append_str(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (in_chunks)
		buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	else if (response->has_length && status != 204) /* which has no body, whatever it says */
		buf_printf(out, "Content-Length: %" PRIu64 "\r\n", response->length);
	if (close && !is_upgrade)
		buf_append_str(out, "Connection: close\r\n");
	buf_append_str(out, "\r\n");
}
