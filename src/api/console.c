/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console: files that are built into the program, for anybody who asks; what they show comes from the API. A path
 * that no route and no file has is a page of the console, if it is a browser that asks for it, and 404 for all others.
 */
#include "api/console_assets.h"
#include "api/handlers.h"
#include "api/operator/logins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX "/index.html"

/* Styles are set by components at run time; scripts come from here alone. Previews are framed, from their own origin. */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "                \
	"img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src "       \
	"'self'; "                                                                                 \
	"manifest-src 'self'; frame-src 'self' blob: data: %s; object-src 'none'; "                \
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static const char absent_page[] =
	"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Sandlot</title>\n"
	"<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;"
	"padding:0 1em;color-scheme:light dark}</style>\n"
	"<h1>Sandlot serves</h1>\n"
	"<p>The API is here, described by <a href=\"/openapi.json\">/openapi.json</a>. The console "
	"is not: %s.</p>\n"
	"<p>To have it, run <code>make</code> where npm can be reached, and start the daemon "
	"again.</p>\n</html>\n";

static int compare_path(const void *key, const void *element)
{
	return strcmp(key, ((const struct console_asset *)element)->path);
}

static const struct console_asset *find_asset(const char *path)
{
	return bsearch(
		path, console_assets, console_asset_count, sizeof(console_assets[0]), compare_path);
}

/* Whether a list such as "gzip, br;q=0.5" has a word that is not refused there. */
static bool accepts(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at && *at; at += *at == ',') {
		size_t part;

		at += strspn(at, " \t");
		part = strcspn(at, ",");
		if (part >= len && strncasecmp(at, word, len) == 0 && strchr(",; \t", at[len]) &&
			!memmem(at, part, "q=0,", 4) &&
			!(part > 3 && memcmp(at + part - 3, "q=0", 3) == 0))
			return true;
		at += part;
	}
	return false;
}

static enum console_coding choose_coding(
	const struct request *req, const struct console_asset *asset)
{
	const char *accepted = request_header(req, "Accept-Encoding");

	if (asset->forms[CONSOLE_BROTLI].len > 0 && accepts(accepted, "br"))
		return CONSOLE_BROTLI;
	if (asset->forms[CONSOLE_GZIP].len > 0 && accepts(accepted, "gzip"))
		return CONSOLE_GZIP;
	return CONSOLE_PLAIN;
}

/* Previews that may be shown in a frame: those of any sandbox, on their own names. */
static void set_policy(struct request *req, const struct api *api)
{
	char previews[256], policy[1024];

	snprintf(previews, sizeof(previews), "%s://*.%.150s:%u", api->preview_scheme,
		api->preview_domain, api->preview_port);
	snprintf(policy, sizeof(policy), POLICY, previews);
	request_answer_header(req, "Content-Security-Policy", policy);
	request_answer_header(req, "Referrer-Policy", "no-referrer");
	request_answer_header(req, "Permissions-Policy",
		"camera=(), geolocation=(), microphone=(), payment=(), usb=()");
}

static void serve(struct request *req, const struct api *api, const struct console_asset *asset)
{
	static const char *const names[] = {NULL, "gzip", "br"};
	enum console_coding coding = choose_coding(req, asset);
	const char *known = request_header(req, "If-None-Match");
	char etag[64];

	/* Of each form its own: a cache must not take one for another. */
	snprintf(etag, sizeof(etag), "\"%s%s%s\"", asset->etag, names[coding] ? "-" : "",
		names[coding] ? names[coding] : "");
	set_policy(req, api);
	request_answer_header(req, "ETag", etag);
	request_answer_header(req, "Vary", "Accept-Encoding");
	request_answer_header(req, "Cache-Control",
		asset->is_immutable ? "public, max-age=31536000, immutable" : "no-cache");
	if (known && (strstr(known, etag) || strcmp(known, "*") == 0)) {
		request_answer_empty(req, 304);
		return;
	}
	if (names[coding])
		request_answer_header(req, "Content-Encoding", names[coding]);
	request_answer_static(req, 200, asset->type, console_bytes + asset->forms[coding].offset,
		asset->forms[coding].len);
}

static void serve_absence(struct request *req, const struct api *api)
{
	char page[2048];

	snprintf(page, sizeof(page), absent_page, console_absence);
	set_policy(req, api);
	request_answer_text(req, 200, "text/html; charset=utf-8", page);
}

/* The index of a directory of files, such as /docs, with a slash at the end or without. */
static bool serve_directory(struct request *req, const struct api *api, const char *path)
{
	size_t len = strlen(path);
	bool has_slash = len > 0 && path[len - 1] == '/';
	char index[256];
	const struct console_asset *asset;

	if (len > 128)
		return false;
	snprintf(index, sizeof(index), "%.*s" INDEX, (int)(has_slash ? len - 1 : len), path);
	asset = find_asset(index);
	if (!asset)
		return false;
	serve(req, api, asset);
	return true;
}

/* The pages of the console are known by nobody but itself; paths of the API and of files are none of them. */
static bool is_page(const struct request *req, const char *path)
{
	static const char *const others[] = {"/v1/", "/assets/", "/docs/", "/e2b/", "/mcp"};
	const char *accept = request_header(req, "Accept");

	for (size_t i = 0; i < array_len(others); i++) {
		if (strncmp(path, others[i], strlen(others[i])) == 0)
			return false;
	}
	return strcmp(path, "/") == 0 || (accept && strcasestr(accept, "text/html"));
}

HANDLER(console_page)
{
	const char *path = request_path(req);
	const struct console_asset *asset = find_asset(path);

	if (strcmp(path, LOGIN_PATH) == 0 && request_query(req, "code"))
		return logins_follow_link(req, context, err);
	if (asset) {
		serve(req, context, asset);
		return 0;
	}
	if (serve_directory(req, context, path))
		return 0;
	if (!is_page(req, path))
		return err_explain(err, ERR_NOT_FOUND, "route_not_found",
			"GET /openapi.json lists all routes", "no such route");
	asset = find_asset(INDEX);
	if (asset)
		serve(req, context, asset);
	else
		serve_absence(req, context);
	return 0;
}
