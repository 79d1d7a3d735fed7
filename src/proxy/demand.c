/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/demand.h"

#include "proxy/refusal.h"

#include <openssl/sha.h>
#include <string.h>

bool demand_is_upgrade(const struct message *request)
{
	return request->parser.method == HTTP_GET &&
	       slice_is_like(message_get(request, "Upgrade"), "websocket") &&
	       message_lists(request, "Connection", "upgrade");
}

bool demand_is_old(const struct message *request)
{
	return request->parser.http_minor == 0;
}

bool demand_is_page(const struct message *request)
{
	struct slice accept = message_get(request, "Accept");

	return request->parser.method == HTTP_GET && accept.at && strstr(accept.at, "text/html");
}

/* Browsers send no Origin with images and the like; they do send this. */
bool demand_is_foreign(const struct message *request)
{
	struct slice site = message_get(request, "Sec-Fetch-Site");

	return (slice_is(site, "cross-site") || slice_is(site, "same-site")) &&
	       !slice_is(message_get(request, "Sec-Fetch-Mode"), "navigate");
}

/* --- what cannot be passed on --- */

static bool is_of_another_version(const struct message *request)
{
	return request->parser.http_major != 1 || request->parser.http_minor > 1;
}

static bool has_no_host(const struct message *request)
{
	struct slice host = message_get(request, "Host");

	if (message_count(request, "Host") != 1 || host.len == 0 || host.len >= DEMAND_HOST_MAX)
		return true;
	for (size_t i = 0; i < host.len; i++) {
		unsigned char byte = (unsigned char)host.at[i];

		if (byte <= ' ' || byte >= 0x7f || strchr("/\\@?#,\"<>", byte))
			return true;
	}
	return false;
}

static bool is_for_the_proxy(const struct message *request)
{
	return request->parser.method == HTTP_CONNECT || request->parser.method == HTTP_TRACE;
}

static bool has_another_upgrade(const struct message *request)
{
	return message_get(request, "Upgrade").at && !demand_is_upgrade(request);
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
	return request->target.len > DEMAND_TARGET_MAX;
}

#define FAULT(number, name, text)                                                                  \
	{                                                                                          \
		.status = (number), .code = (name), .title = REFUSAL_BAD_REQUEST,                  \
		.message = (text)                                                                  \
	}

const struct proxy_refusal *demand_fault(const struct message *request)
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
		{message_has_other_coding,
			FAULT(400, "bad_coding", "Previews know no transfer coding but chunked.")},
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

struct proxy_visit demand_visit(const struct message *request)
{
	return (struct proxy_visit){
		.method = http_method_str((enum http_method)request->parser.method),
		.target = request->target.at,
		.cookie = message_get(request, "Cookie").at,
		.authorization = message_get(request, "Authorization").at,
		.api_key = message_get(request, "X-API-Key").at,
		.origin = message_get(request, "Origin").at,
		.referer = message_get(request, "Referer").at,
		.is_page = demand_is_page(request),
		.is_foreign = demand_is_foreign(request),
		.is_websocket = demand_is_upgrade(request),
	};
}

void demand_digest(const struct message *request, char digest[DEMAND_DIGEST_LEN])
{
	static const char *const names[] = {"Cookie", "Authorization", "X-API-Key", "Origin"};
	struct buf all = BUF_INIT(MESSAGE_HEAD_MAX + sizeof(size_t) * array_len(names) + 1);

	buf_append(&all, &(bool){demand_is_foreign(request)}, sizeof(bool));
	for (size_t i = 0; i < array_len(names); i++) {
		struct slice value = message_get(request, names[i]);

		buf_append(&all, &value.len, sizeof(value.len));
		buf_append(&all, value.at, value.len);
	}
	SHA256(all.data, all.len, (unsigned char *)digest);
	buf_fini(&all);
}
