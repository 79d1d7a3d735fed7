/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of kept output, as a crash or a broken disk may leave it. It is opened, read, and written on, and
 * what is read is always in order and says where it was cut.
 */
#include "base/clock.h"
#include "core/output/output_cursor.h"
#include "core/output/output_log.h"
#include "core/output/output_segment.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/sandlot-fuzz-XXXXXX";
static int dir = -1;

static void remove_dir(void)
{
	output_segment_remove_all(dir, 1);
	rmdir(path);
}

static void open_dir(void)
{
	if (!mkdtemp(path) || atexit(remove_dir) != 0)
		abort();
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* From the first offset to the end without a gap that is not told. */
static void read_all(struct output_log *log)
{
	struct output_cursor *cursor = output_cursor_new(log, 0);
	struct output_piece piece;
	uint64_t at = 0;
	uint8_t data[4096];

	for (;;) {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert(piece.offset == at && piece.next > at);
		assert(piece.kind == OUTPUT_CUT || piece.next - at <= sizeof(data));
		at = piece.next;
	}
	assert(at == output_log_end(log));
	output_cursor_free(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct output_log *log;
	struct err err;
	uint64_t end;
	int fd;

	if (dir < 0)
		open_dir();
	fd = openat(dir, "1-0", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	assert(output_log_open(dir, 1, OUTPUT_LOG_MIN_BYTES, &log, &err) == 0);
	read_all(log);
	end = output_log_end(log);
	output_log_append(log, 2, clock_wall_ms(), "more", 4);
	assert(output_log_end(log) == end + 4);
	read_all(log);
	output_log_unref(log);
	/* As the next daemon finds it. */
	assert(output_log_open(dir, 1, OUTPUT_LOG_MIN_BYTES, &log, &err) == 0);
	assert(output_log_end(log) == end + 4);
	read_all(log);
	output_log_unref(log);
	output_segment_remove_all(dir, 1);
	return 0;
}
