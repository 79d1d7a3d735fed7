/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with a route that is a WebSocket, and a client over a raw socket, which can be as wrong as a
 * test wants it to be.
 */
#pragma once

#include "http/websocket/websocket.h"
#include "http_client.h"
#include "http_fixture.h"

#define KEY	 "dGhlIHNhbXBsZSBub25jZQ==" /* the one of RFC 6455 */
#define ACCEPT	 "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define CAPACITY (64u * 1024) /* of what waits to be sent */

#define UPGRADE                                                                                    \
	WITH_TOKEN "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"                     \
		   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"

enum { CONTINUATION, TEXT, BINARY, CLOSE = 8, PING, PONG };

#define FIN 0x80

/* What became of its WebSockets. */
struct site {
	struct server *server;
	uint16_t port;
	atomic_llong expires_at_ms; /* of the token; 0: never */

	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* Under the lock; waited for with site_wait(). */
	unsigned opened, gone, rooms, messages;
	struct websocket *websocket; /* the latest that opened; a reference */
	bool is_echo;
	bool pauses; /* itself, with each message */
	bool last_was_text;
};

/* 0 for the default. */
void site_open(struct site *site, unsigned max_connections);
void site_close(struct site *site, unsigned grace_ms);

/* For cmocka: a site for each test. */
int site_setup(void **state);
int site_teardown(void **state);

/* Waits until *counter, a member, is at least `want`; fails the test after ten seconds. */
void site_wait(struct site *site, const unsigned *counter, unsigned want);
unsigned site_count(struct site *site, const unsigned *counter);
void site_set(struct site *site, bool *flag, bool value);
bool site_saw_text(struct site *site);

/* A client whose handshake is done; also the server knows of it. */
int site_connect(struct site *site);

struct frame {
	int opcode; /* -1: the connection ended */
	uint64_t len;
	char data[2 * WEBSOCKET_MESSAGE_MAX];
};

/* A frame as it goes over the wire, and its length. `first` is its first byte. */
size_t frame_make(uint8_t *out, uint8_t first, const void *data, size_t len);
void frame_send(int fd, uint8_t first, const void *data, size_t len);

void frame_receive(int fd, struct frame *frame);
void frame_expect(int fd, int opcode, const void *data, size_t len);

/* A close frame of this status (0: with none), and then the end of the connection. */
void frame_expect_close(int fd, unsigned status);
