/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of kept output: `<process>-<offset of its first byte in hex>`, a list of records
 * (core/output/output_record.h). Which files a log has and keeps is core/output/output_log.h; what one takes on disk, and how
 * far it is valid, is here.
 */
#pragma once

#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_SEGMENT_NAME_LEN 32		 /* "4294967295-ffffffffffffffff" and its NUL */
#define OUTPUT_SEGMENT_BLOCK	4096		 /* what a disk gives away at least */
#define OUTPUT_OFFSET_MAX	(UINT64_MAX / 4) /* names beyond are not ours: nothing can overflow */

/* Counted: by the log while it is in its list, by each cursor that reads it. */
struct output_segment {
	atomic_int refs;
	uint64_t first; /* offset of its first byte */

	/* The appender's alone. */
	bool is_head;	/* it stays */
	uint64_t limit; /* of its size */
	uint64_t
		blocks; /* bytes it takes on disk, at least: of one that is used again, what it had */

	/* Under the log's lock. */
	uint64_t size; /* of the file, as far as it is valid */
	/*
	 * Position of the last record, whose header is not to be read yet, and offset of its first byte; equal to
	 * size when none is open; UINT64_MAX in a file of an earlier life, whose headers will not change.
	 */
	uint64_t open, open_offset;
	int open_stream;
	size_t open_header;
	int64_t open_at_ms;
};

/* `size` bytes are valid of a file that has file_size. */
struct output_segment *output_segment_new(uint64_t first, uint64_t size, uint64_t file_size);
void output_segment_unref(struct output_segment *segment);

/* What a file of that size takes on disk. */
uint64_t output_segment_blocks(uint64_t size);

/* What the file takes on disk, and what it would take if it had that size. */
uint64_t output_segment_cost(const struct output_segment *segment);
uint64_t output_segment_cost_at(const struct output_segment *segment, uint64_t size);

bool output_segment_is_empty(const struct output_segment *segment);

/* What it needs before bytes of a stream that come now: a header, unless its open record is of that stream and time. */
size_t output_segment_header_len(const struct output_segment *segment, int stream, int64_t now_ms);

void output_segment_name(char name[OUTPUT_SEGMENT_NAME_LEN], uint32_t process, uint64_t first);

/* The descriptor of the file that begins at an offset, or -errno. */
int output_segment_open(int dir_fd, uint32_t process, uint64_t first, int flags) must_check;

/* Reads the names of a process's files, in any order. */
int output_segment_list(int dir_fd, uint32_t process,
	void (*found)(void *arg, const char *name, uint64_t first), void *arg) must_check;

/* The highest number of a process that has files; 0 if none has. */
uint32_t output_segment_last(int dir_fd);

/* A file of an earlier life; NULL if it cannot be one. */
struct output_segment *output_segment_load(int dir_fd, const char *name, uint64_t first);

/* Walks through the last file of an earlier life, to learn where the log ends; leaves out what is no record. */
int output_segment_recover(
	struct output_segment *segment, int dir_fd, uint32_t process, uint64_t *ret_end) must_check;

/* Removes all files of a process. */
void output_segment_remove_all(int dir_fd, uint32_t process);
