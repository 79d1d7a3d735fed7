/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as an event in the way of API Gateway's proxy integration, and a result as the answer to it:
 * {"statusCode", "headers", "body", "isBase64Encoded"}.
 */
#pragma once

#include "http/server/request/request.h"

/* Of the payload: 1.0 is that of REST APIs, 2.0 that of HTTP APIs and of function URLs. */
enum http_event_version {
	HTTP_EVENT_1,
	HTTP_EVENT_2,
};

/* Refuses a parameter of Sandlot that is given twice. */
int http_event_check(const json_t *query, struct err *err) must_check;

/* The request without what is for Sandlot alone: the token, cookies, `format`, `version`, `async`. */
json_t *http_event_make(const struct request *req, enum http_event_version version);

/* Answers with the result; ERR_BAD_GATEWAY if it is no such answer. Only headers that describe the body are passed on,
 * and those whose name begins with X-. */
int http_event_answer(struct request *req, const json_t *result, enum http_event_version version,
	struct err *err) must_check;
