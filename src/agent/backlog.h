/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of one command that the daemon has not acknowledged yet: at most AGENT_OUTPUT_WINDOW
 * bytes, numbered from the first byte the command wrote, with the stream each of them came from.
 *
 *     start <= sent <= end <= start + AGENT_OUTPUT_WINDOW
 *
 * The bytes live in a ring that grows with need and is freed when all are acknowledged. The streams
 * live beside it as runs of four bytes each, so that a command that writes single bytes to both in
 * turn costs five bytes for each, and not a list node.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum backlog_stream { BACKLOG_STDOUT = 1, BACKLOG_STDERR = 2 };

struct backlog {
	uint8_t *ring;
	size_t ring_size;  /* 0 or a power of two */
	uint64_t start;	   /* acknowledged up to here */
	uint64_t sent;	   /* handed to the present link up to here */
	uint64_t end;	   /* read up to here */
	struct buf runs;   /* uint32_t: length * 2 + (is stderr) */
	size_t run_first;  /* index of the run that holds `start` */
	size_t run_sent;   /* index of the run that holds `sent` */
	uint32_t run_done; /* bytes of that run before `sent` */
};

/* Bytes of one stream, in one or two parts because the ring wraps. */
struct backlog_piece {
	uint64_t offset;
	enum backlog_stream stream;
	size_t len;
	struct iovec parts[2];
};

void backlog_init(struct backlog *backlog);
void backlog_fini(struct backlog *backlog);

/* Room to read into, and its size; 0 when the window is full. Then tell what was read. */
size_t backlog_space(struct backlog *backlog, uint8_t **ret_at);
void backlog_add(struct backlog *backlog, enum backlog_stream stream, size_t len);

/* The next bytes to send, at most max of them; false if there are none. Then tell what was sent. */
bool backlog_next(struct backlog *backlog, size_t max, struct backlog_piece *ret_piece);
void backlog_send(struct backlog *backlog, size_t len);

/* A new link begins where the acknowledgements ended. */
void backlog_rewind(struct backlog *backlog);

/* Everything before offset was taken. -EPROTO for bytes that do not exist yet. */
int backlog_ack(struct backlog *backlog, uint64_t offset) must_check;
