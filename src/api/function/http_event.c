/* SPDX-License-Identifier: Apache-2.0 */
#include "api/function/http_event.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/mem.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Of the request, what is between its client and us. */
static const char *const private_headers[] = {"Authorization", "X-API-Key", "Cookie", "Connection"};
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

/* Numbers and truth values are taken as their text, as API Gateway does. */
static json_t *value_text(const json_t *value)
{
	auto_free char *text = json_is_number(value) || json_is_boolean(value)
				       ? json_dumps(value, JSON_ENCODE_ANY)
				       : NULL;

	return text ? json_string(text) : json_incref((json_t *)value);
}

/* Of each name one text: the last that was sent, or all, with a separator between. */
static json_t *one_of_each(const json_t *lists, const char *separator, bool is_lower)
{
	json_t *texts = json_object(), *list, *value;
	const char *name;
	size_t i;

	json_object_foreach((json_t *)lists, name, list)
	{
		struct buf text = BUF_INIT(1u << 20);
		auto_free char *key = mem_strdup(name);

		for (char *at = key; is_lower && *at; at++)
			*at = (char)tolower((unsigned char)*at);
		json_array_foreach(list, i, value)
		{
			json_auto_t *part = value_text(value);

			if (!json_is_string(part))
				continue;
			if (!separator)
				buf_consume(&text, text.len);
			else if (text.len > 0)
				buf_append(&text, separator, strlen(separator));
			buf_append(&text, json_string_value(part), json_string_length(part));
		}
		json_object_set_new(texts, key,
			json_stringn(text.len > 0 ? (const char *)text.data : "", text.len));
		buf_fini(&text);
	}
	return texts;
}

static void put_escaped(struct buf *buf, const char *text)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			buf_append(buf, text, 1);
		else
			buf_printf(buf, "%%%02X", (unsigned char)*text);
	}
}

/* The query as it could have been sent, without what is for Sandlot. */
static json_t *raw_query(const json_t *lists)
{
	struct buf text = BUF_INIT(1u << 20);
	auto_free char *made = NULL;
	const char *name;
	json_t *list, *value;
	size_t i;

	json_object_foreach((json_t *)lists, name, list)
	{
		json_array_foreach(list, i, value)
		{
			if (text.len > 0)
				buf_append(&text, "&", 1);
			put_escaped(&text, name);
			buf_append(&text, "=", 1);
			put_escaped(&text, json_string_value(value));
		}
	}
	made = buf_take_str(&text);
	return json_string(made);
}

static json_t *or_null(json_t *object)
{
	if (json_object_size(object) > 0)
		return object;
	json_decref(object);
	return json_null();
}

/* A header, or an empty text if there is none, or it is not UTF-8. */
static json_t *header_text(const struct request *req, const char *name)
{
	const char *text = request_header(req, name);
	json_t *value = text ? json_string(text) : NULL;

	return value ? value : json_string("");
}

/* "12/Mar/2026:19:03:58 +0000" */
static json_t *time_text(int64_t now_ms)
{
	time_t now_s = (time_t)(now_ms / 1000);
	char text[64];
	struct tm tm;

	gmtime_r(&now_s, &tm);
	strftime(text, sizeof(text), "%d/%b/%Y:%H:%M:%S +0000", &tm);
	return json_string(text);
}

static json_t *make_first(const struct request *req, json_t *headers, json_t *query)
{
	const char *path = request_path(req), *method = request_method(req);
	int64_t now_ms = clock_wall_ms();

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:O, s:o, s:o, s:n, s:n, "
			 "s:{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:I, s:s, s:{s:s, s:o}}}",
		"version", "1.0", "resource", "/", "httpMethod", method, "path", path, "headers",
		one_of_each(headers, NULL, false), "multiValueHeaders", headers,
		"queryStringParameters", or_null(one_of_each(query, NULL, false)),
		"multiValueQueryStringParameters", or_null(json_incref(query)), "pathParameters",
		"stageVariables", "requestContext", "resourcePath", "/", "httpMethod", method,
		"path", path, "protocol", "HTTP/1.1", "stage", "$default", "domainName",
		header_text(req, "Host"), "requestId", request_id(req), "requestTime",
		time_text(now_ms), "requestTimeEpoch", (json_int_t)now_ms, "accountId", "anonymous",
		"identity", "sourceIp", request_peer(req), "userAgent",
		header_text(req, "User-Agent"));
}

static json_t *make_second(const struct request *req, json_t *headers, json_t *query)
{
	int64_t now_ms = clock_wall_ms();
	json_t *event = json_pack("{s:s, s:s, s:s, s:o, s:o, "
				  "s:{s:s, s:o, s:s, s:s, s:s, s:o, s:I, "
				  "s:{s:s, s:s, s:s, s:s, s:o}}}",
		"version", "2.0", "routeKey", "$default", "rawPath", request_path(req),
		"rawQueryString", raw_query(query), "headers", one_of_each(headers, ",", true),
		"requestContext", "accountId", "anonymous", "domainName", header_text(req, "Host"),
		"requestId", request_id(req), "routeKey", "$default", "stage", "$default", "time",
		time_text(now_ms), "timeEpoch", (json_int_t)now_ms, "http", "method",
		request_method(req), "path", request_path(req), "protocol", "HTTP/1.1", "sourceIp",
		request_peer(req), "userAgent", header_text(req, "User-Agent"));

	if (json_object_size(query) > 0)
		json_object_set_new(event, "queryStringParameters", one_of_each(query, ",", false));
	return event;
}

int http_event_check(const json_t *query, struct err *err)
{
	for (size_t i = 0; i < array_len(own_parameters); i++) {
		if (json_array_size(json_object_get(query, own_parameters[i])) > 1)
			return err_set(err, ERR_INVALID, "the query parameter %.64s is given twice",
				own_parameters[i]);
	}
	return 0;
}

json_t *http_event_make(const struct request *req, enum http_event_version version)
{
	json_auto_t *headers = request_headers_to_json(req), *query = request_query_to_json(req);
	json_t *event;
	size_t len;
	const void *data = request_body_bytes(req, &len);

	for (size_t i = 0; i < array_len(private_headers); i++)
		remove_header(headers, private_headers[i]);
	for (size_t i = 0; i < array_len(own_parameters); i++)
		json_object_del(query, own_parameters[i]);
	event = version == HTTP_EVENT_1 ? make_first(req, headers, query)
					: make_second(req, headers, query);
	set_body(event, data, len);
	if (version == HTTP_EVENT_2 && len == 0)
		json_object_del(event, "body");
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

	/* The id of a request is the daemon's, as its log has it. */
	if (strncasecmp(name, "X-", 2) == 0 && strcasecmp(name, "X-Content-Type-Options") != 0 &&
		strcasecmp(name, "X-Frame-Options") != 0 && strcasecmp(name, "X-Request-ID") != 0)
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

static void pass_header(struct request *req, const char *name, const char *text, const char **type)
{
	if (!text || strlen(text) > 4096 || !is_plain(text))
		return;
	if (strcasecmp(name, "Content-Type") == 0)
		*type = text;
	else if (may_pass(name))
		request_answer_header(req, name, text);
}

/* Passes headers on, several values of one name with commas between; the type of the body, which is a text of *ret_texts. */
static const char *pass_headers(struct request *req, const json_t *result, json_t **ret_texts)
{
	json_auto_t *joined =
		one_of_each(json_object_get(result, "multiValueHeaders"), ", ", false);
	json_t *texts = json_object(), *value;
	const char *type = "application/json", *name;

	json_object_foreach(json_object_get(result, "headers"), name, value)
		json_object_set_new(texts, name, value_text(value));
	json_object_update(texts, joined);
	json_object_foreach(texts, name, value)
		pass_header(req, name, json_string_value(value), &type);
	*ret_texts = texts;
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

/* In version 2.0 what is no such object is the body itself. */
static void answer_plainly(struct request *req, const json_t *result)
{
	request_answer_header(req, "Content-Security-Policy", "sandbox");
	request_answer_exact_json(req, 200, result ? json_incref((json_t *)result) : json_null());
}

int http_event_answer(
	struct request *req, const json_t *result, enum http_event_version version, struct err *err)
{
	const json_t *status = json_object_get(result, "statusCode");
	const json_t *body = json_object_get(result, "body");
	json_int_t number = json_is_string(status) ? atoll(json_string_value(status))
						   : json_integer_value(status);
	const char *text = json_string_value(body), *type;
	size_t len = json_string_length(body);
	auto_free void *data = NULL;
	json_auto_t *texts = NULL;

	if (version == HTTP_EVENT_2 && !status) {
		answer_plainly(req, result);
		return 0;
	}
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
	type = pass_headers(req, result, &texts);
	/* What code of a user wrote must not act in the name of this origin. */
	request_answer_header(req, "Content-Security-Policy", "sandbox");
	if (number == 204 || number == 304)
		request_answer_empty(req, (int)number);
	else
		request_answer_bytes(req, (int)number, type, text ? text : "", len);
	return 0;
}
