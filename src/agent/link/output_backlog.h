/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of one command that the daemon has not acknowledged yet: at most AGENT_OUTPUT_WINDOW
 * bytes, numbered from the first byte the command wrote, with the stream each of them came from and the
 * time at which they were read.
 *
 *     start <= sent <= end <= start + AGENT_OUTPUT_WINDOW
 *
 * The bytes live in a ring that grows with need and is freed when all are acknowledged. Streams and
 * times live beside it as runs of eight bytes each, so that a command that writes single bytes to both
 * in turn costs nine bytes for each, and not a list node.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* As AGENT_OUTPUT numbers them. */
enum output_backlog_stream {
	OUTPUT_BACKLOG_STDOUT = 1,
	OUTPUT_BACKLOG_STDERR,
	OUTPUT_BACKLOG_RESULT,
};

struct output_backlog {
	uint8_t *ring;
	size_t ring_size;  /* 0 or a power of two */
	uint64_t start;	   /* acknowledged up to here */
	uint64_t sent;	   /* handed to the present link up to here */
	uint64_t end;	   /* read up to here */
	struct buf runs;   /* struct run */
	size_t run_first;  /* index of the run that holds `start` */
	size_t run_sent;   /* index of the run that holds `sent` */
	uint32_t run_done; /* bytes of that run before `sent` */
};

/* Bytes of one stream, in one or two parts because the ring wraps. */
struct output_backlog_piece {
	uint64_t offset;
	enum output_backlog_stream stream;
	uint32_t at_ms; /* when the first of them was read, as given to output_backlog_add() */
	size_t len;
	struct iovec parts[2];
};

void output_backlog_init(struct output_backlog *backlog);
void output_backlog_fini(struct output_backlog *backlog);

/*
 * Gives room to read into, and its size; 0 when the window is full. Then the caller says how much
 * it read, and at what time by a clock that only goes forward (its low 32 bits are enough).
 */
size_t output_backlog_space(struct output_backlog *backlog, uint8_t **ret_at);
void output_backlog_add(struct output_backlog *backlog, enum output_backlog_stream stream,
	size_t len, uint32_t now_ms);

/*
 * Gives the next bytes to send, at most max of them; false if there are none. Then the caller says
 * how much it sent.
 */
bool output_backlog_next(
	struct output_backlog *backlog, size_t max, struct output_backlog_piece *ret_piece);
void output_backlog_send(struct output_backlog *backlog, size_t len);

/* Starts again at the last acknowledged byte, for a new link. */
void output_backlog_rewind(struct output_backlog *backlog);

/* Drops everything before offset. -EPROTO for bytes that do not exist yet. */
int output_backlog_ack(struct output_backlog *backlog, uint64_t offset) must_check;
