/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blocking HTTP/1.1 client on one kept-alive connection, as cheap as a client can be: what is
 * measured through it is the server. It trusts the server (a bench talks to daemons it started).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HTTP_ANSWER_MAX (256 * 1024)

struct http_target {
	char address[256]; /* "127.0.0.1:PORT" or "unix:/path" */
	char header[512];  /* more header lines, each with its CRLF, or "" */
};

struct http_client {
	const struct http_target *target;
	int fd; /* -1 while there is no connection */
	char *answer;
	size_t answer_len;
	size_t body_start;
	size_t body_len;
	int status;
};

void http_init(struct http_client *client, const struct http_target *target);
void http_fini(struct http_client *client);

/* Opens the connection if there is none. 0 or -errno. */
int http_connect(struct http_client *client);

/* One request and its whole answer, then status and body in *client. 0 or -errno. */
int http_call(struct http_client *client, const char *method, const char *path, const char *body);

/*
 * The same for an answer of any length: the body is read to its end and counted, not kept (*client has its
 * beginning). The bytes are those on the wire, chunk sizes and all. Closes the connection. 0 or -errno.
 */
int http_drain(struct http_client *client, const char *method, const char *path, const char *body,
	uint64_t *ret_bytes);

/*
 * Asks for another protocol ("websocket", "tcp") and leaves the connection to the caller, with what came
 * behind the answer's head as the body. Any status but 101 is -EPROTO. 0 or -errno.
 */
int http_upgrade(struct http_client *client, const char *method, const char *path, const char *body,
	const char *protocol);

/* The value of the first "id" or "Id" of the last answer, at most len - 1 bytes; "" if none. */
void http_find_id(const struct http_client *client, char *ret_id, size_t len);
