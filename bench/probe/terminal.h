/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal at the far end of an upgraded connection, for timing keys: binary messages of a WebSocket,
 * or the raw bytes that Docker speaks after "Upgrade: tcp".
 */
#pragma once

#include "http.h"

#include <stdbool.h>
#include <stdint.h>

struct terminal {
	struct http_client client;
	bool is_websocket;
	uint8_t head[14]; /* of the frame that is being read */
	unsigned head_len;
	uint64_t payload_left;
};

/* method and path as of http_upgrade; a GET is a WebSocket. 0 or -errno. */
int terminal_open(struct terminal *terminal, const struct http_target *target, const char *method,
	const char *path, const char *body);
void terminal_close(struct terminal *terminal);

/* Types one character. 0 or -errno. */
int terminal_type(struct terminal *terminal, char key);

/* Reads until `key` was shown, at most timeout_ms. 0 or -errno. */
int terminal_expect(struct terminal *terminal, char key, int timeout_ms);

/* Reads until nothing has come for quiet_ms. 0 or -errno. */
int terminal_settle(struct terminal *terminal, int quiet_ms);
