/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept output, compared with a model: every byte that was appended, and its stream. The disk can be told to be
 * full (the writing calls are wrapped by the linker, see meson.build).
 */
#pragma once

#include "core/output/output_cursor.h"
#include "core/output/output_log.h"

#include <stdatomic.h>

#define PROCESS	   7u
#define MIN_BYTES  OUTPUT_LOG_MIN_BYTES
#define SEGMENT	   (MIN_BYTES / 8)
#define MARK	   8
#define ROOM	   (SEGMENT - MARK - 16) /* for a run, in one file */
#define MODEL_MAX  (4u << 20)
#define PIECES_MAX 4096

struct output_disk {
	atomic_llong left; /* bytes that it takes; -1: all */
	bool headers_fail; /* what is there cannot be overwritten */
};

extern struct output_disk output_disk;
extern int64_t output_now_ms; /* what the clock says */

struct world {
	char dir[64];
	int dir_fd;
	int fds_before;
	struct output_log *log;
	uint8_t *bytes, *streams; /* all that was appended */
	uint64_t len;
	uint64_t kept; /* of the last read_all */
	struct output_piece pieces[PIECES_MAX];
	size_t count;
	uint64_t seed;
};

int setup(void **state); /* an empty directory; no log is open */
int teardown(void **state);

uint64_t next_random(struct world *world);

void open_log(struct world *world, uint64_t max_bytes);
void reopen_log(struct world *world, uint64_t max_bytes);

/* Forgets all, for the next round of a loop. */
void clear(struct world *world);

/* To the log, and to the model. Mixed: a few runs of both streams, of all small lengths, with repetitions. */
void append(struct world *world, int stream, const void *data, size_t len);
void append_random(struct world *world, int stream, size_t len);
void append_mixed(struct world *world, size_t pieces);

bool is_bytes(const struct output_piece *piece);

/* A piece has exactly the bytes that were appended there, all of one stream. */
void assert_piece(struct world *world, const struct output_piece *piece, const uint8_t *data);

/* Reads from an offset to the end with a buffer of that size; everything must agree with the model. */
void read_all(struct world *world, uint64_t from, size_t size);
void assert_all_kept(struct world *world);

/* Of the last read_all. */
size_t count_cuts(const struct world *world, uint64_t *ret_bytes);

/* Calls visit, if there is one, for each file; the number of files. */
size_t each_file(struct world *world, void (*visit)(struct world *world, const char *name));
uint64_t sum_sizes(struct world *world); /* in blocks */
uint64_t file_size(struct world *world, const char *name);
void put_file(struct world *world, const char *name, const void *data, size_t len);
