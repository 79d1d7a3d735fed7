/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the two connections of a passage: what came from there that was not looked at, and what is to be sent. It is
 * read only while there is room on the other side, so a slow reader slows the writer.
 */
#pragma once

#include "http/message.h"

#define SIDE_READ_BYTES	 (64u * 1024)
#define SIDE_WAITING_MAX (128u * 1024) /* then the other side is not read */
#define SIDE_OUT_MAX	 (SIDE_WAITING_MAX + 2 * SIDE_READ_BYTES + MESSAGE_HEAD_MAX * 2)
#define SIDE_IN_MAX	 (MESSAGE_HEAD_MAX + SIDE_READ_BYTES)

struct passage;

struct side {
	struct passage *passage;
	int fd;
	bool is_readable, is_writable;
	bool hangs_up;		   /* its end is on the way: to be read */
	bool has_ended, is_broken; /* it ended, without having said so */
	struct buf in, out;
};

/* A descriptor of -1: it is not connected yet. */
void side_init(struct side *side, struct passage *passage, int fd);

/* Closes it; it may be connected again. */
void side_close(struct side *side);

/* Drops memory that holds nothing. */
void side_release(struct side *side);

struct side *side_other(struct side *side);

/* Whether more may be put into `out`. */
bool side_has_room(const struct side *side);

/* Reads once into `in`; whether something came, be it the end. */
bool side_receive(struct side *side);

/*
 * Sends what waits; whether something went. What a side said before it stopped to listen is still to be read, and
 * its end with it.
 */
bool side_flush(struct side *side);
