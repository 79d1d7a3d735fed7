/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define OPCODE_BINARY 2u
#define OPCODE_CLOSE  8u

/* Bytes the head has, as far as its first two tell. Servers do not mask. */
static unsigned head_size(const struct terminal *terminal)
{
	unsigned length = terminal->head_len < 2 ? 0 : terminal->head[1] & 127u;

	return length == 126 ? 4 : length == 127 ? 10 : 2;
}

static uint64_t payload_size(const struct terminal *terminal)
{
	unsigned size = head_size(terminal);
	uint64_t length = 0;

	if (size == 2)
		return terminal->head[1] & 127u;
	for (unsigned i = 2; i < size; i++)
		length = length << 8 | terminal->head[i];
	return length;
}

/* Whether the byte is one that the terminal shows; -EPIPE at the frame that closes. */
static int take_byte(struct terminal *terminal, uint8_t byte)
{
	unsigned opcode;

	if (!terminal->is_websocket)
		return 1;
	if (terminal->payload_left > 0) {
		opcode = terminal->head[0] & 15u;
		if (--terminal->payload_left == 0)
			terminal->head_len = 0;
		return opcode == OPCODE_BINARY;
	}
	terminal->head[terminal->head_len++] = byte;
	if (terminal->head_len < 2 || terminal->head_len < head_size(terminal))
		return 0;
	terminal->payload_left = payload_size(terminal);
	if ((terminal->head[0] & 15u) == OPCODE_CLOSE)
		return -EPIPE;
	if (terminal->payload_left == 0)
		terminal->head_len = 0;
	return 0;
}

/* 1 if key is among the bytes, 0 if not, -errno. */
static int take(struct terminal *terminal, const uint8_t *data, size_t len, char key)
{
	int found = 0;

	for (size_t i = 0; i < len; i++) {
		int r = take_byte(terminal, data[i]);

		if (r < 0)
			return r;
		if (r > 0 && data[i] == (uint8_t)key)
			found = 1;
	}
	return found;
}

/* Waits for bytes: 1 if key is among them, 0 if not, -ETIMEDOUT, -errno. */
static int receive(struct terminal *terminal, char key, int timeout_ms)
{
	struct pollfd item = {.fd = terminal->client.fd, .events = POLLIN};
	uint8_t data[65536];
	ssize_t n;
	int r = poll(&item, 1, timeout_ms);

	if (r == 0)
		return -ETIMEDOUT;
	if (r < 0)
		return -errno;
	n = recv(terminal->client.fd, data, sizeof(data), 0);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	return take(terminal, data, (size_t)n, key);
}

int terminal_open(struct terminal *terminal, const struct http_target *target, const char *method,
	const char *path, const char *body)
{
	struct http_client *client = &terminal->client;
	int r;

	*terminal = (struct terminal){.is_websocket = strcmp(method, "GET") == 0};
	http_init(client, target);
	r = http_upgrade(client, method, path, body, terminal->is_websocket ? "websocket" : "tcp");
	if (r == 0)
		r = take(terminal, (uint8_t *)client->answer + client->body_start, client->body_len,
			0);
	if (r < 0)
		terminal_close(terminal);
	return r < 0 ? r : 0;
}

void terminal_close(struct terminal *terminal)
{
	http_fini(&terminal->client);
}

int terminal_type(struct terminal *terminal, char key)
{
	/* A mask of zeroes is a mask. */
	uint8_t frame[7] = {0x80 | OPCODE_BINARY, 0x80 | 1, 0, 0, 0, 0, (uint8_t)key};
	const uint8_t *data = terminal->is_websocket ? frame : frame + 6;
	size_t len = terminal->is_websocket ? sizeof(frame) : 1;

	return send(terminal->client.fd, data, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -EIO;
}

int terminal_expect(struct terminal *terminal, char key, int timeout_ms)
{
	int r;

	do {
		r = receive(terminal, key, timeout_ms);
	} while (r == 0);
	return r < 0 ? r : 0;
}

int terminal_settle(struct terminal *terminal, int quiet_ms)
{
	int r;

	do {
		r = receive(terminal, 0, quiet_ms);
	} while (r >= 0);
	return r == -ETIMEDOUT ? 0 : r;
}
