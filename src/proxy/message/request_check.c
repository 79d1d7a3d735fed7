/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/message/request_check.h"

#include "http/head_rules.h"
#include "proxy/message/refusal.h"

#include <openssl/sha.h>
#include <string.h>

bool request_check_is_upgrade(const struct message *request)
{
	return message_asks(request, "GET") &&
	       slice_is_like(message_get(request, "Upgrade"), "websocket") &&
	       message_lists(request, "Connection", "upgrade");
}

bool request_check_is_old(const struct message *request)
{
	return request->version_minor == 0;
}

bool request_check_is_page(const struct message *request)
{
	struct slice accept = message_get(request, "Accept");

	return message_asks(request, "GET") && accept.at && strstr(accept.at, "text/html");
}

/* Browsers send no Origin with images, frames and the like; they do send these. */
static bool is_of_another_origin(const struct message *request)
{
	struct slice site = message_get(request, "Sec-Fetch-Site");

	return slice_is(site, "cross-site") || slice_is(site, "same-site");
}

static bool is_navigation(const struct message *request)
{
	return slice_is(message_get(request, "Sec-Fetch-Mode"), "navigate");
}

bool request_check_is_foreign(const struct message *request)
{
	return is_of_another_origin(request) && !is_navigation(request);
}

/* Whatever is navigated and is not a window: iframe, frame, object, embed, and what may come. */
bool request_check_is_framed(const struct message *request)
{
	struct slice destination = message_get(request, "Sec-Fetch-Dest");

	return is_of_another_origin(request) && is_navigation(request) && destination.at &&
	       !slice_is(destination, "document");
}

bool request_check_is_window(const struct message *request)
{
	return is_navigation(request) &&
	       slice_is(message_get(request, "Sec-Fetch-Dest"), "document") &&
	       !slice_is(message_get(request, "Sec-Fetch-Site"), "same-origin");
}

/* --- what cannot be passed on --- */

static bool is_of_another_version(const struct message *request)
{
	return !head_rules_is_version(request->version_major, request->version_minor);
}

static bool has_no_host(const struct message *request)
{
	struct slice host = message_get(request, "Host");

	return message_count(request, "Host") != 1 || !head_rules_is_host(host.at, host.len);
}

static bool has_doubtful_end(const struct message *request)
{
	return message_framing_fault(request);
}

static bool is_for_the_proxy(const struct message *request)
{
	return message_asks(request, "CONNECT") || message_asks(request, "TRACE");
}

static bool has_another_upgrade(const struct message *request)
{
	return message_get(request, "Upgrade").at && !request_check_is_upgrade(request);
}

/* Only one is looked at, and the app must not get the other. */
static bool has_two_credentials(const struct message *request)
{
	return message_count(request, "Authorization") > 1 ||
	       message_count(request, "X-API-Key") > 1;
}

static bool has_no_path(const struct message *request)
{
	return request->target.len == 0 || request->target.at[0] != '/';
}

static bool has_long_target(const struct message *request)
{
	return request->target.len > REQUEST_CHECK_TARGET_MAX;
}

#define FAULT(number, name, text)                                                                  \
	{                                                                                          \
		.status = (number), .code = (name), .title = REFUSAL_BAD_REQUEST,                  \
		.message = (text)                                                                  \
	}

const struct proxy_refusal *request_check_fault(const struct message *request)
{
	static const struct {
		bool (*is_so)(const struct message *request);
		struct proxy_refusal refusal;
	} faults[] = {
		{is_of_another_version,
			FAULT(505, "version_not_supported", "Previews speak HTTP/1.1.")},
		{has_no_host, FAULT(400, "bad_host", "The request needs one header Host.")},
		{is_for_the_proxy,
			FAULT(405, "method_not_allowed", "Previews pass no CONNECT and no TRACE.")},
		{has_another_upgrade, FAULT(501, "upgrade_not_supported",
					      "Previews pass no upgrade but that to a WebSocket.")},
		{has_doubtful_end, FAULT(400, "bad_coding",
					   "Where the body ends must be said once, by "
					   "Content-Length or by the "
					   "transfer coding chunked of HTTP/1.1.")},
		{has_two_credentials, FAULT(400, "bad_credentials",
					      "The request has a header for credentials twice.")},
		{has_long_target, FAULT(414, "target_too_long",
					  "Path and query have more than 8 KiB together.")},
		{has_no_path, FAULT(400, "bad_target", "The target must be a path.")},
	};

	for (size_t i = 0; i < array_len(faults); i++) {
		if (faults[i].is_so(request))
			return &faults[i].refusal;
	}
	return NULL;
}

/* --- what it shows --- */

struct proxy_visit request_check_visit(const struct message *request)
{
	return (struct proxy_visit){
		.request = request,
		.method = request->method,
		.target = request->target.at,
		.cookie = message_get(request, "Cookie").at,
		.authorization = message_get(request, "Authorization").at,
		.api_key = message_get(request, "X-API-Key").at,
		.origin = message_get(request, "Origin").at,
		.referer = message_get(request, "Referer").at,
		.is_page = request_check_is_page(request),
		.is_foreign = request_check_is_foreign(request),
		.is_framed = request_check_is_framed(request),
		.is_window = request_check_is_window(request),
		.is_websocket = request_check_is_upgrade(request),
	};
}

void request_check_digest(const struct message *request, char digest[REQUEST_CHECK_DIGEST_LEN])
{
	static const char *const names[] = {
		"Cookie", "Authorization", "X-API-Key", "Origin", "Referer"};
	bool is_framed = request_check_is_framed(request);
	/* Who frames a page is known by its Referer; of others it says nothing, and often changes. */
	size_t count = is_framed ? array_len(names) : array_len(names) - 1;
	struct buf all = BUF_INIT(MESSAGE_HEAD_MAX + sizeof(size_t) * array_len(names) + 3);

	buf_append(&all,
		(bool[]){request_check_is_foreign(request), is_framed,
			request_check_is_window(request)},
		3 * sizeof(bool));
	for (size_t i = 0; i < count; i++) {
		struct slice value = message_get(request, names[i]);

		buf_append(&all, &value.len, sizeof(value.len));
		buf_append(&all, value.at, value.len);
	}
	SHA256(all.data, all.len, (unsigned char *)digest);
	buf_fini(&all);
}
