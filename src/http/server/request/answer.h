/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is answered with, kept until the connection can send it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;
struct websocket;

enum answer_kind { ANSWER_NONE, ANSWER_BYTES, ANSWER_FD, ANSWER_STREAM, ANSWER_WEBSOCKET };

struct answer_header {
	struct answer_header *next;
	const char *name;
	const char *value;
};

struct answer {
	enum answer_kind kind;
	int status;
	const char *type; /* NULL: no Content-Type */
	char *bytes;	  /* malloc'ed */
	size_t len;
	const void *lasting; /* in the place of bytes: what outlives the server */
	int fd;		     /* owned */
	uint64_t size;	     /* of what fd gives; UINT64_MAX: until its end */
	struct stream *stream;
	struct websocket *websocket; /* until it is open */
	struct answer_header *headers;
};

/* Drops what is there, but for the headers. */
void answer_fini(struct answer *answer);

/* The size of the buffer through which a stream or download goes. */
size_t answer_buffer(const struct answer *answer);

/* {"error":{...}} with what a client may know, and the code that would confirm the request (or NULL); malloc'ed. */
char *answer_error_text(const struct err *err, const char *request_id, const char *confirm);

/* {"code":<status>,"message":...}; malloc'ed. */
char *answer_bare_error_text(int status, const struct err *err);
