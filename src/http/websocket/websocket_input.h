/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client of a WebSocket sends, taken apart into messages. wslay checks frames and UTF-8, and makes
 * the answers to pings and closes; they wait here until the owner lets them out.
 *
 * It belongs to one thread, and holds no lock when it calls its owner.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wslay/wslay.h>

struct websocket_input_ops {
	/* Whether more may be read. */
	bool (*may_read)(void *owner);
	/* A whole message; behind it is a NUL that does not count. */
	void (*message)(void *owner, bool is_text, const uint8_t *data, size_t len);
	/* A piece of an answer, called by websocket_input_answer(); < 0 if it cannot be taken. */
	int (*answer)(void *owner, const uint8_t *data, size_t len);
};

struct websocket_input {
	/* For its owner to read. */
	bool drops_input; /* it takes nothing more: a close came, or nonsense; later bytes are dropped */
	bool has_ended;	  /* the client's side of the connection, at the last read */
	size_t round;	  /* bytes of the last read */
	struct buf early; /* of what came with the handshake, what was not read yet */

	const struct websocket_input_ops *ops;
	void *owner;
	int sock; /* borrowed */
	wslay_event_context_ptr parser;
	size_t max;
	struct buf message; /* as far as it is there */
	bool in_control;    /* the frame being read is a control frame */
	bool is_drained;    /* the last read took all there was */
};

/* `max` bounds a message; a longer one closes the connection with 1009. */
void websocket_input_init(struct websocket_input *input, size_t max,
	const struct websocket_input_ops *ops, void *owner);
void websocket_input_fini(struct websocket_input *input);

/* Before anything is read. `early` is what came with the handshake. */
int websocket_input_open(struct websocket_input *input, int sock, const void *early, size_t len)
	must_check;

/* Reads what there is, up to a share that leaves others their turn. -EPROTO if it is not to be understood,
 * and no answer will tell the client. */
int websocket_input_read(struct websocket_input *input) must_check;

/* Whether answers wait; whether so many that reading must stop; and letting them out, with < 0 if they
 * could not be. */
bool websocket_input_has_answers(const struct websocket_input *input);
bool websocket_input_is_choked(const struct websocket_input *input);
int websocket_input_answer(struct websocket_input *input) must_check;
