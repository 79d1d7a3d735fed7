/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as an event in the way of API Gateway's proxy integration, and a result as the answer to it:
 * {"statusCode", "headers", "body", "isBase64Encoded"}.
 */
#pragma once

#include "http/server/request/request.h"

/* {"httpMethod", "path", "headers", "queryStringParameters", "body", "isBase64Encoded"}. Without what is for Sandlot
 * alone: the token, `format`, `version`, `async`. */
json_t *http_event_make(const struct request *req);

/* Answers with the result; ERR_BAD_GATEWAY if it is no such answer. Only headers that describe the body are passed on,
 * and those whose name begins with X-. */
int http_event_answer(struct request *req, const json_t *result, struct err *err) must_check;
