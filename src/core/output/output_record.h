/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a file of kept output (core/output/output_log.h). First a mark: u64 little-endian, how much of the file
 * is valid, the mark included. Then records: u32 1, u64 the wall clock in ms when its first byte came (its highest
 * bit is set in a record of results), u32 length * 2 + is stderr, bytes; all little-endian. Files of earlier
 * versions have no time: there the length is the first u32, which then is never 1. The last record is open, its length is OUTPUT_RECORD_OPEN, and it goes as far as the
 * mark says; its true length is written when the next one begins. So bytes of one stream that follow each other
 * within OUTPUT_RECORD_MS are one record, however small the pieces they came in. The mark is written after what it covers, so a crash at any moment leaves a
 * file that says exactly what it has, and a file can be used again without being emptied.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_MARK_LEN	     8 /* where the first record begins */
#define OUTPUT_RECORD_LENGTH 4 /* bytes of the length, the end of every header */
#define OUTPUT_RECORD_HEADER (12 + OUTPUT_RECORD_LENGTH)
#define OUTPUT_RECORD_OPEN   0x7fffffffu
#define OUTPUT_RECORD_MS     10 /* bytes that come later have a time of their own */

struct output_record {
	int stream;    /* 1 stdout, 2 stderr, 3 result */
	bool is_open;  /* it goes to the end of the file */
	bool is_cut;   /* though its length says more: it was cut short */
	size_t header; /* bytes before its own */
	int64_t at_ms; /* when its first byte came; 0: unknown */
	uint64_t len;
};

void output_record_encode(uint8_t length[OUTPUT_RECORD_LENGTH], int stream, uint64_t len);

/* The whole header of a record that is open. */
void output_record_encode_open(uint8_t header[OUTPUT_RECORD_HEADER], int stream, int64_t at_ms);

/* Says that `size` bytes of a file are valid. */
int output_mark_write(int fd, uint64_t size) must_check;

/* How much of a file of file_size bytes is valid: OUTPUT_MARK_LEN or more, also of what is no file of ours. */
uint64_t output_mark_read(int fd, uint64_t file_size);

/* Reads a file by position, small things through a window, so that a row of short records is one read. */
struct output_window {
	uint64_t at;
	size_t len;
	uint8_t data[4096];
};

/*
 * Reads up to len bytes at a position of a file of which `size` bytes are valid; less when it suits. 0 at
 * the end, and when the disk fails.
 */
size_t output_record_fetch(
	struct output_window *window, int fd, uint64_t size, uint64_t at, void *data, size_t len);

/*
 * Reads the record that begins at a position; its length is what is there of it, so that no record
 * leaves its file. False if none begins there: the end, or no file of ours.
 */
bool output_record_read(struct output_window *window, int fd, uint64_t size, uint64_t at,
	struct output_record *ret_record) must_check;
