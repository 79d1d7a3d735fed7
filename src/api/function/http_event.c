/* SPDX-License-Identifier: Apache-2.0 */
#include "api/function/http_event.h"

#include "base/format.h"
#include "base/mem.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Of the request, what is between its client and us. */
static const char *const private_headers[] = {"Authorization", "Cookie", "Connection"};
static const char *const own_parameters[] = {"format", "version", "async"};

static void remove_header(json_t *headers, const char *name)
{
	const char *at;
	json_t *value;
	void *next;

	json_object_foreach_safe(headers, next, at, value)
	{
		if (strcasecmp(at, name) == 0)
			json_object_del(headers, at);
	}
}

/* Text if it is UTF-8, else base64. */
static void set_body(json_t *event, const void *data, size_t len)
{
	json_t *text = len > 0 ? json_stringn(data, len) : json_null();
	auto_free char *encoded = NULL;

	json_object_set_new(event, "isBase64Encoded", json_boolean(!text));
	if (!text) {
		encoded = mem_new((len + 2) / 3 * 4 + 1);
		EVP_EncodeBlock((unsigned char *)encoded, data, (int)len);
		text = json_string(encoded);
	}
	json_object_set_new(event, "body", text);
}

json_t *http_event_make(const struct request *req)
{
	json_t *headers = request_headers_to_json(req), *query = request_query_to_json(req);
	json_t *event;
	size_t len;
	const void *data = request_body_bytes(req, &len);

	for (size_t i = 0; i < array_len(private_headers); i++)
		remove_header(headers, private_headers[i]);
	for (size_t i = 0; i < array_len(own_parameters); i++)
		json_object_del(query, own_parameters[i]);
	if (json_object_size(query) == 0) {
		json_decref(query);
		query = json_null();
	}
	event = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:n, s:n, s:{s:s, s:s, s:s}}", "version",
		"1.0", "resource", "/", "httpMethod", request_method(req), "path",
		request_path(req), "headers", headers, "queryStringParameters", query,
		"pathParameters", "stageVariables", "requestContext", "httpMethod",
		request_method(req), "path", request_path(req), "requestId", request_id(req));
	set_body(event, data, len);
	return event;
}

/* --- the answer --- */

static int refuse(struct err *err, const char *what)
{
	return err_explain(err, ERR_BAD_GATEWAY, "function_failed",
		"return {\"statusCode\": 200, \"headers\": {...}, \"body\": \"...\"}",
		"the result of the function is no answer: %s", what);
}

static bool may_pass(const char *name)
{
	static const char *const passed[] = {"Cache-Control", "Content-Disposition",
		"Content-Language", "ETag", "Expires", "Last-Modified", "Location", "Retry-After",
		"Vary"};

	if (strncasecmp(name, "X-", 2) == 0 && strcasecmp(name, "X-Content-Type-Options") != 0 &&
		strcasecmp(name, "X-Frame-Options") != 0)
		return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-") == strlen(name) &&
		       strlen(name) <= 128;
	for (size_t i = 0; i < array_len(passed); i++) {
		if (strcasecmp(name, passed[i]) == 0)
			return true;
	}
	return false;
}

static bool is_plain(const char *value)
{
	for (; *value; value++) {
		if ((unsigned char)*value < ' ' || (unsigned char)*value > '~')
			return false;
	}
	return true;
}

/* Passes headers on; the type of the body. */
static const char *pass_headers(struct request *req, const json_t *headers)
{
	const char *type = "application/json", *name;
	json_t *value;

	json_object_foreach((json_t *)headers, name, value)
	{
		const char *text = json_string_value(value);

		if (!text || strlen(text) > 4096 || !is_plain(text))
			continue;
		if (strcasecmp(name, "Content-Type") == 0)
			type = text;
		else if (may_pass(name))
			request_answer_header(req, name, text);
	}
	return type;
}

static int decode(const char *text, size_t len, void **ret_data, size_t *ret_len)
{
	auto_free unsigned char *data = mem_new(len + 1);
	size_t padding = 0;
	int n = len % 4 == 0 ? EVP_DecodeBlock(data, (const unsigned char *)text, (int)len) : -1;

	if (n < 0)
		return -1;
	while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
		padding++;
	*ret_len = (size_t)n - padding;
	*ret_data = take_ptr(&data);
	return 0;
}

int http_event_answer(struct request *req, const json_t *result, struct err *err)
{
	const json_t *status = json_object_get(result, "statusCode");
	const json_t *body = json_object_get(result, "body");
	json_int_t number = json_is_string(status) ? atoll(json_string_value(status))
						   : json_integer_value(status);
	const char *text = json_string_value(body), *type;
	size_t len = json_string_length(body);
	auto_free void *data = NULL;

	if (!json_is_object(result) || !status)
		return refuse(err, "it has no statusCode");
	if (number < 200 || number > 599)
		return refuse(err, "its statusCode is not from 200 to 599");
	if (body && !json_is_null(body) && !text)
		return refuse(err, "its body is not a text");
	if (text && json_is_true(json_object_get(result, "isBase64Encoded"))) {
		if (decode(text, len, &data, &len) < 0)
			return refuse(err, "its body is not base64");
		text = data;
	}
	type = pass_headers(req, json_object_get(result, "headers"));
	/* What code of a user wrote must not act in the name of this origin. */
	request_answer_header(req, "Content-Security-Policy", "sandbox");
	if (number == 204 || number == 304)
		request_answer_empty(req, (int)number);
	else
		request_answer_bytes(req, (int)number, type, text ? text : "", len);
	return 0;
}
