/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command wrote, kept on disk within a bound: its head and its tail, and the cut in between is
 * known. Every byte has an offset, counted over all streams in the order of their arrival.
 *
 * A log is a row of files in one directory, `<process>-<offset of its first byte in hex>`, each a list of
 * records (core/output/output_record.h). A file is begun when the one before is full. The first files, up to half
 * of the bound, stay; of the rest the oldest goes before the sum would exceed the bound. So no byte is ever
 * rewritten, what a crash cut short is still right as far as it goes, and a reader that has a file open can
 * finish it.
 *
 * One thread appends; any number of cursors (core/output/output_cursor.h) on any thread read meanwhile. Bytes can be
 * read as soon as the append that brought them has returned. They survive the death of the daemon, not a
 * failure of power.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_LOG_MIN_BYTES (64u << 10) /* the least bound there is */

struct output_log;

/*
 * Opens the log of a process in the directory dir_fd (of which it keeps a copy), to go on where it ended; one
 * that is not there is empty and costs no file until the first byte. One that was kept with a larger bound
 * shrinks with its next bytes. One more descriptor is held once there is something to append. Counted. No other
 * may be open that is appended to: what it is about to write looks like something that a crash cut short.
 *
 * max_bytes bounds what the files take on disk, in blocks of 4 KiB: OUTPUT_LOG_MIN_BYTES or more.
 */
int output_log_open(int dir_fd, uint32_t process, uint64_t max_bytes, struct output_log **ret_log,
	struct err *err) must_check;

/* From now on, before it is appended to, it keeps to the bound of its sandbox (core/output/output_budget.h) too. */
struct output_budget;
void output_log_join(struct output_log *log, struct output_budget *budget);

struct output_log *output_log_ref(struct output_log *log);
void output_log_unref(struct output_log *log);

/*
 * Adds bytes of stdout (1), stderr (2) or the result (3) that were written at a time of the wall clock. What the
 * disk does not take is left out, which readers see as a cut: so it cannot fail.
 */
void output_log_append(
	struct output_log *log, int stream, int64_t at_ms, const void *data, size_t len);

/*
 * Leaves out everything up to offset: readers see a cut. The appender's thread. Nothing is done for one that
 * does not lie ahead, or is above 2^62.
 */
void output_log_skip(struct output_log *log, uint64_t offset);

/* One past the last byte. */
uint64_t output_log_end(struct output_log *log);
