/* SPDX-License-Identifier: Apache-2.0 */
/* The Connect protocol with its JSON codec: envelopes of streams, and errors. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

struct request;

#define E2B_CONNECT_JSON   "application/json"
#define E2B_CONNECT_STREAM "application/connect+json"

/* The one message of a stream's request: an envelope with an object, and nothing behind it. */
int e2b_connect_read(const void *data, size_t len, json_t **ret_message, struct err *err)
	must_check;

/* Appends a message of a stream; takes it over. */
void e2b_connect_put(struct buf *out, json_t *message);

/* Appends the end of a stream: with the error, or (code NULL) a good one. */
void e2b_connect_put_end(struct buf *out, const char *code, const char *message);

/* Answers with an error: as the end of a stream, or as a status. */
void e2b_connect_answer_error(
	struct request *req, bool is_stream, const char *code, const char *message);

/* The code of what the API refused with a status and an error document. */
const char *e2b_connect_code(int status, const json_t *error);
