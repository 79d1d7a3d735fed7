/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is answered with, kept until the connection can send it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct request;
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
	int fd;	       /* owned */
	uint64_t size; /* of what fd gives; UINT64_MAX: until its end */
	struct stream *stream;
	struct websocket *websocket; /* until it is open */
	struct answer_header *headers;
};

/* Drops what is there, but for the headers. */
void answer_fini(struct answer *answer);

/* Gives the answer to the library; only when it expects one. */
bool answer_queue(struct request *req, struct MHD_Connection *connection);

/*
 * Writes the answer to the socket, past the library, which takes none in the middle of a body. The
 * sending side is shut afterwards. False if the answer is no plain document.
 */
bool answer_write(struct request *req, int sock);

/* {"error":{...}} with what a client may know; malloc'ed. */
char *answer_error_text(const struct err *err, const char *request_id);
