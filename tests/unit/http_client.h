/* SPDX-License-Identifier: Apache-2.0 */
/* A client over a raw socket, which can be as wrong as a test wants it to be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply {
	int status; /* 0: the connection ended before one */
	char head[16384];
	char *body; /* ended by a NUL byte */
	size_t len;
	size_t room; /* of the body */
	bool whole;  /* the body ended as its headers promised */
};

/* Connected to 127.0.0.1:port; reads and writes give up after ten seconds. */
int client_connect(uint16_t port);
int client_connect_from(const char *address, uint16_t port);

void client_send(int fd, const void *data, size_t len);
void client_print(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "METHOD /target" with Host, the extra header lines ("A: b\r\n") and a body with its length. */
void client_request(int fd, uint16_t port, const char *line, const char *extra, const char *body);

/* The next reply; 100 Continue is skipped. `has_body` is false for an answer to HEAD. */
void client_receive(int fd, struct reply *reply, bool has_body);

/* All of it on a connection of its own. */
void client_call(
	uint16_t port, const char *line, const char *extra, const char *body, struct reply *reply);

/* A header of the reply, copied into value; NULL if there is none. */
const char *reply_header(const struct reply *reply, const char *name, char value[256]);

void reply_fini(struct reply *reply);

/* Whether the peer closes within the timeout; what it still sends is dropped. */
bool client_sees_close(int fd);
