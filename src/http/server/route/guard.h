/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request must show before anything of it is believed: that it was meant for this server (Host: the wall
 * against DNS rebinding; and the name in its TLS handshake), that no foreign web page made the browser send it
 * (Origin, Sec-Fetch-Site), a token, and a body of the announced kind. But for the handshake's name, all from the
 * headers alone.
 */
#pragma once

#include "base/err.h"
#include "http/server/route/headers.h"
#include "http/server/route/router.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct tls_peer;
struct guard;
struct listener;

#define GUARD_UNKNOWN_SIZE UINT64_MAX
#define GUARD_TOKEN_MAX	   4096 /* a signed one is long */
#define GUARD_EMPTY_MAX	   64	/* of a body on a route without fields: "{}" and white space */

/* The body that the headers announce. */
struct guard_body {
	bool present;
	bool wants_continue; /* Expect: 100-continue */
	uint64_t size;	     /* GUARD_UNKNOWN_SIZE when chunked or not to be trusted */
};

/* hosts as in server_config. */
struct guard *guard_new(const struct listener *listener, const char *const *hosts);
void guard_free(struct guard *guard);

/* Host, Origin and Sec-Fetch-Site. */
int guard_check_source(const struct guard *guard, const struct headers *headers, enum method method,
	struct err *err) must_check;

/* The host, with its port, of an origin of that scheme; NULL if it is of another one. */
const char *guard_origin_host(const char *origin, const char *scheme);

/* That Host names the server that a client's handshake asked for, if it did; once the Host was found good. */
int guard_check_server_name(
	const struct headers *headers, const struct tls_peer *tls_peer, struct err *err) must_check;

/* The token of Authorization: Bearer or X-API-Key. */
int guard_read_token(const struct headers *headers, const char **ret_token, struct err *err)
	must_check;

/*
 * The name of the cookie of a browser's session. Browsers send cookies to every port of a host, so ours is in it. With
 * is_secure, which is always so where we speak TLS, none but this host can have set it.
 */
#define GUARD_COOKIE_MAX 64
void guard_format_cookie(const struct guard *guard, bool is_secure, char name[GUARD_COOKIE_MAX]);

/*
 * Whether the browser reaches us over TLS, as far as the headers tell: ours, or that of a proxy in front.
 */
bool guard_is_secure(const struct guard *guard, const struct headers *headers);

/*
 * That token, the ticket of a route that takes one, or else the cookie of a session, which counts only if a page of
 * ours made the browser send it. A token in the query is refused: addresses are remembered and logged by browsers and
 * proxies. ret->path is left alone.
 */
int guard_read_credential(const struct guard *guard, const struct headers *headers,
	const struct target *target, unsigned route_flags, enum method method, struct arena *arena,
	struct credential *ret_credential, struct err *err) must_check;

/* How the body is delimited; what is ambiguous there is refused on every route. is_old: of HTTP/1.0. */
int guard_read_framing(const struct headers *headers, bool is_old, struct guard_body *ret_body,
	struct err *err) must_check;

/* The most bytes of a JSON body that a route with these flags takes, and the refusal of a longer one. */
size_t guard_body_max(unsigned route_flags);
int guard_refuse_long_body(unsigned route_flags, struct err *err);

/* Whether a route with these flags takes a body of this kind and size. A route without fields takes "{}", because
 * SDKs send it where there is nothing to say. */
int guard_check_body(unsigned route_flags, const struct headers *headers,
	const struct guard_body *body, struct err *err) must_check;
