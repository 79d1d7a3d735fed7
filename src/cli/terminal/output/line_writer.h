/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of processes as lines: with the name of the process and the time in front, only the last ones, or those of
 * several processes in the order of their times. A line goes out by one write, so that those of several do not mix.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_WRITER_LINE_MAX (64u * 1024) /* a longer one becomes several */
#define LINE_WRITER_TAIL_MAX 100000

struct line_writer {
	const char *prefix; /* NULL: none */
	bool with_times;
	int64_t since_ms; /* lines that began before are left out; 0: none is */
	size_t tail;	  /* the most lines that are held; 0: no bound */
	bool holds;	  /* lines wait for line_writer_release() */

	int64_t at_ms;		       /* when the bytes came that are added next; 0: unknown */
	struct line_writer_half *half; /* the beginnings of lines of both streams */
	struct line_writer_held *held; /* with `tail` a ring of so many lines */
	size_t held_count, held_next, held_room;
};

void line_writer_fini(struct line_writer *writer);

/* Bytes for a descriptor. */
int line_writer_add(struct line_writer *writer, int fd, const void *data, size_t len,
	struct err *err) must_check;

/* Lines that writers hold go out in the order of their times, and all that follow do at once. */
int line_writer_release(struct line_writer *const writers[], size_t count, struct err *err)
	must_check;

/* The end: what is half a line goes out as a whole one. */
int line_writer_flush(struct line_writer *writer, struct err *err) must_check;
