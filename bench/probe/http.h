/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blocking HTTP/1.1 client on one kept-alive connection, as cheap as a client can be: what is
 * measured through it is the server. It trusts the server (a bench talks to daemons it started).
 */
#pragma once

#include <stddef.h>

#define HTTP_ANSWER_MAX (256 * 1024)

struct http_target {
	char address[256]; /* "127.0.0.1:PORT" or "unix:/path" */
	char header[512];  /* one more header line without CRLF, or "" */
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

/* The value of the first "id" or "Id" of the last answer, at most len - 1 bytes; "" if none. */
void http_find_id(const struct http_client *client, char *ret_id, size_t len);
