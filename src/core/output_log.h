/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command wrote, kept on disk within a bound: its head and its tail, and the cut in between is
 * known. Every byte has an offset, counted over both streams in the order of their arrival.
 *
 * A log is a row of files in one directory, `<process>-<offset of its first byte in hex>`, each a list of
 * records: u32 little-endian (length * 2 + is stderr), bytes. A file is begun when the one before is
 * full. The first files, up to half of the bound, stay; of the rest the oldest goes when the sum exceeds
 * the bound. So nothing is ever rewritten, a record that a crash cut short is found by its length and
 * dropped, and a reader that has a file open can finish it.
 *
 * One thread appends; any number of cursors on any thread read meanwhile. Bytes can be read as soon as
 * the append that brought them has returned. They survive the death of the daemon, not a failure of
 * power.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct output_log;
struct output_cursor;

enum output_kind {
	OUTPUT_NONE,   /* nothing more at present */
	OUTPUT_STDOUT, /* a run of bytes of one stream */
	OUTPUT_STDERR,
	OUTPUT_CUT, /* bytes from `offset` to `next` are not kept */
};

struct output_piece {
	enum output_kind kind;
	uint64_t offset; /* of its first byte */
	uint64_t next;	 /* one past its last */
	bool is_run_end; /* what follows, if anything is there already, is of the other stream, or cut */
};

/*
 * Opens the log of a process in the directory dir_fd (which stays the caller's, and must outlive the log),
 * to go on where it ended; one that is not there is empty and costs no file until the first byte. Counted.
 */
int output_log_open(int dir_fd, uint32_t process, uint64_t max_bytes, struct output_log **ret_log,
	struct err *err) must_check;
struct output_log *output_log_ref(struct output_log *log);
void output_log_unref(struct output_log *log);

/*
 * Adds bytes of stdout (1) or stderr (2). What the disk does not take is left out, which readers see as
 * a cut: so it cannot fail.
 */
void output_log_append(struct output_log *log, int stream, const void *data, size_t len);

/* Leaves out everything up to offset, which lies ahead: readers see a cut. */
void output_log_skip(struct output_log *log, uint64_t offset);

/* One past the last byte. */
uint64_t output_log_end(struct output_log *log);

/* An offset from which at most `bytes` are left to read, at the start of a file or run. For scrollback. */
uint64_t output_log_tail(struct output_log *log, uint64_t bytes);

/* A reader that begins at `from`, at most output_log_end(). Holds a reference of the log. */
struct output_cursor *output_cursor_new(struct output_log *log, uint64_t from);
void output_cursor_free(struct output_cursor *cursor);

/* Reads the next piece, up to size bytes of one run, into data; bytes are those of one stream. Never blocks
 * but for the disk. */
void output_cursor_read(
	struct output_cursor *cursor, void *data, size_t size, struct output_piece *ret_piece);

/* Removes all files of a process. */
void output_log_remove(int dir_fd, uint32_t process);
