/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept output, compared with a model: every byte that was appended, and its stream. The disk can be told to be
 * full (the writing calls are wrapped by the linker, see meson.build).
 */
#include "core/output_cursor.h"
#include "core/output_log.h"

#include "base/fd.h"
#include "base/log.h"
#include "fd_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#define PROCESS	   7u
#define MIN_BYTES  OUTPUT_LOG_MIN_BYTES
#define SEGMENT	   (MIN_BYTES / 8)
#define MARK	   8
#define ROOM	   (SEGMENT - MARK - 4) /* for a run, in one file */
#define MODEL_MAX  (4u << 20)
#define PIECES_MAX 4096

/* --- the disk --- */

static atomic_llong disk_left = -1; /* bytes that it takes; -1: all */
static bool headers_fail;	    /* what is there cannot be overwritten */

ssize_t __real_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);

ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
	struct iovec less[2] = {{0}};
	long long left = disk_left;
	ssize_t n;

	if (left < 0)
		return __real_pwritev64(fd, parts, count, at);
	assert_in_range(count, 1, 2);
	for (int i = 0; i < count; i++) {
		less[i] = parts[i];
		if ((long long)less[i].iov_len > left)
			less[i].iov_len = (size_t)left;
		left -= (long long)less[i].iov_len;
	}
	if (disk_left == 0) {
		errno = ENOSPC;
		return -1;
	}
	n = __real_pwritev64(fd, less, count, at);
	if (n > 0)
		disk_left -= n;
	return n;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	if (headers_fail) {
		errno = ENOSPC;
		return -1;
	}
	return __real_pwrite64(fd, data, len, at);
}

/* --- the world --- */

struct piece {
	struct output_piece is;
	uint64_t kept; /* bytes */
};

struct world {
	char dir[64];
	int dir_fd;
	int fds_before;
	struct output_log *log;
	uint8_t *bytes, *streams; /* all that was appended */
	uint64_t len;
	uint64_t kept; /* of the last read_all */
	struct piece pieces[PIECES_MAX];
	size_t count;
	uint64_t seed;
};

static uint64_t next_random(struct world *world)
{
	world->seed = world->seed * 6364136223846793005ull + 1442695040888963407ull;
	return world->seed >> 33;
}

static int setup(void **state)
{
	struct world *world = mem_new(sizeof(*world));

	log_open("test", LOG_ERROR);
	disk_left = -1;
	headers_fail = false;
	world->fds_before = count_fds();
	world->seed = 42;
	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-output-XXXXXX");
	if (!mkdtemp(world->dir))
		return -1;
	world->dir_fd = open(world->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	world->bytes = mem_new(MODEL_MAX);
	world->streams = mem_new(MODEL_MAX);
	*state = world;
	return world->dir_fd < 0 ? -1 : 0;
}

/* Calls visit for each file; the number of files. */
static size_t each_file(struct world *world, void (*visit)(struct world *world, const char *name))
{
	DIR *dir = opendir(world->dir);
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (visit)
			visit(world, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return count;
}

static void remove_file(struct world *world, const char *name)
{
	if (unlinkat(world->dir_fd, name, 0) < 0)
		unlinkat(world->dir_fd, name, AT_REMOVEDIR);
}

static int teardown(void **state)
{
	struct world *world = *state;
	int fds_before = world->fds_before, fds_after;

	output_log_unref(world->log);
	each_file(world, remove_file);
	fd_close(world->dir_fd);
	rmdir(world->dir);
	free(world->bytes);
	free(world->streams);
	free(world);
	fds_after = count_fds();
	return fds_after == fds_before ? 0 : -1;
}

static void open_log(struct world *world, uint64_t max_bytes)
{
	struct err err = {0};

	if (output_log_open(world->dir_fd, PROCESS, max_bytes, &world->log, &err) < 0)
		fail_msg("%s", err.message);
}

static void reopen_log(struct world *world, uint64_t max_bytes)
{
	output_log_unref(take_ptr(&world->log));
	open_log(world, max_bytes);
}

/* Forgets all, for the next round of a loop. */
static void clear(struct world *world)
{
	output_log_unref(take_ptr(&world->log));
	each_file(world, remove_file);
	world->len = 0;
}

static void append(struct world *world, int stream, const void *data, size_t len)
{
	assert_true(world->len + len <= MODEL_MAX);
	memcpy(world->bytes + world->len, data, len);
	memset(world->streams + world->len, stream, len);
	output_log_append(world->log, stream, world->bytes + world->len, len);
	world->len += len;
	assert_int_equal(output_log_end(world->log), world->len);
}

static void append_random(struct world *world, int stream, size_t len)
{
	uint8_t *data = mem_new(len + 1);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)next_random(world);
	append(world, stream, data, len);
	free(data);
}

/* A few runs of both streams, of all small lengths, with repetitions. */
static void append_mixed(struct world *world, size_t pieces)
{
	for (size_t i = 0; i < pieces; i++)
		append_random(world, next_random(world) % 3 ? 1 : 2, next_random(world) % 9);
}

static bool is_bytes(const struct output_piece *piece)
{
	return piece->kind == OUTPUT_STDOUT || piece->kind == OUTPUT_STDERR;
}

/* A piece has exactly the bytes that were appended there, all of one stream. */
static void assert_piece(struct world *world, const struct output_piece *piece, const uint8_t *data)
{
	assert_true(piece->next > piece->offset);
	assert_true(piece->next <= world->len);
	if (!is_bytes(piece))
		return;
	assert_memory_equal(
		data, world->bytes + piece->offset, (size_t)(piece->next - piece->offset));
	for (uint64_t at = piece->offset; at < piece->next; at++)
		assert_int_equal(world->streams[at], piece->kind == OUTPUT_STDOUT ? 1 : 2);
}

/* Reads from an offset to the end with a buffer of that size; everything must agree with the model. */
static void read_all(struct world *world, uint64_t from, size_t size)
{
	struct output_cursor *cursor = output_cursor_new(world->log, from);
	uint8_t *data = mem_new(size);
	struct output_piece piece, before = {.next = from};

	world->kept = 0;
	world->count = 0;
	for (;;) {
		output_cursor_read(cursor, data, size, &piece);
		assert_int_equal(piece.offset, before.next);
		if (is_bytes(&before))
			assert_int_equal(before.is_run_end,
				piece.kind != OUTPUT_NONE && piece.kind != before.kind);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert_piece(world, &piece, data);
		if (is_bytes(&piece))
			world->kept += piece.next - piece.offset;
		if (world->count < PIECES_MAX)
			world->pieces[world->count++].is = piece;
		before = piece;
	}
	assert_int_equal(piece.next, world->len);
	output_cursor_free(cursor);
	free(data);
}

static size_t count_cuts(const struct world *world, uint64_t *ret_bytes)
{
	size_t count = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < world->count; i++) {
		const struct output_piece *piece = &world->pieces[i].is;

		if (piece->kind != OUTPUT_CUT)
			continue;
		count++;
		*ret_bytes += piece->next - piece->offset;
	}
	return count;
}

static void assert_all_kept(struct world *world)
{
	read_all(world, 0, 65536);
	assert_int_equal(world->kept, world->len);
}

static uint64_t disk_bytes; /* of add_size */

static void add_size(struct world *world, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	disk_bytes += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
}

static uint64_t sum_sizes(struct world *world)
{
	disk_bytes = 0;
	each_file(world, add_size);
	return disk_bytes;
}

static uint64_t file_size(struct world *world, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	return (uint64_t)st.st_size;
}

static void put_file(struct world *world, const char *name, const void *data, size_t len)
{
	int fd = openat(world->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* --- small logs --- */

static void an_empty_log_costs_no_file(void **state)
{
	struct world *world = *state;
	int fds = count_fds();

	open_log(world, MIN_BYTES);
	append(world, 1, "", 0);
	read_all(world, 0, 10);
	assert_int_equal(world->count, 0);
	assert_int_equal(output_log_end(world->log), 0);
	assert_int_equal(output_cursor_tail(world->log, 100), 0);
	assert_int_equal(each_file(world, NULL), 0);
	assert_int_equal(count_fds(), fds + 1); /* the directory */
}

static void a_small_log_costs_one_file_and_its_descriptor(void **state)
{
	struct world *world = *state;
	int fds = count_fds();

	open_log(world, MIN_BYTES);
	append(world, 1, "hello\n", 6);
	append(world, 2, "oops\n", 5);
	assert_all_kept(world);
	assert_int_equal(world->count, 2);
	assert_int_equal(each_file(world, NULL), 1);
	assert_int_equal(file_size(world, "7-0"), MARK + 4 + 6 + 4 + 5);
	assert_int_equal(count_fds(), fds + 2);
	reopen_log(world, MIN_BYTES);
	assert_int_equal(count_fds(), fds + 1);
	assert_all_kept(world);
}

static void single_bytes_of_one_stream_are_one_record(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++)
		append(world, 1, &(char){(char)i}, 1);
	assert_int_equal(file_size(world, "7-0"), MARK + 4 + 1000);
	reopen_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++)
		append(world, 1, &(char){(char)i}, 1);
	assert_int_equal(file_size(world, "7-0"), MARK + 4 + 2000);
	assert_all_kept(world);
	assert_int_equal(world->count, 1);
}

static void reading_goes_on_from_every_offset(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	append_mixed(world, 120);
	for (int round = 0; round < 2; round++) {
		for (uint64_t from = 0; from <= world->len; from++) {
			for (size_t size = 1; size <= 64; size *= 4) {
				read_all(world, from, size);
				assert_int_equal(world->kept, world->len - from);
			}
		}
		reopen_log(world, MIN_BYTES);
	}
}

/* One cursor that reads between appends: also in the middle of records that grow, and as they end. */
static void a_cursor_follows_every_append(void **state)
{
	struct world *world = *state;
	struct output_cursor *cursor;
	uint64_t at = 0;

	open_log(world, MIN_BYTES);
	cursor = output_cursor_new(world->log, 0);
	for (size_t i = 0; i < 3000; i++) {
		append_random(world, next_random(world) % 3 ? 1 : 2, next_random(world) % 9);
		for (size_t reads = next_random(world) % 3; reads > 0; reads--) {
			struct output_piece piece;
			uint8_t data[8];

			output_cursor_read(cursor, data, 1 + next_random(world) % 8, &piece);
			assert_int_equal(piece.offset, at);
			if (piece.kind == OUTPUT_NONE)
				break;
			assert_true(is_bytes(&piece));
			assert_piece(world, &piece, data);
			at = piece.next;
			if (piece.is_run_end)
				assert_int_not_equal(world->streams[at], world->streams[at - 1]);
			else if (at < world->len)
				assert_int_equal(world->streams[at], world->streams[at - 1]);
		}
	}
	output_cursor_free(cursor);
}

static void an_offset_beyond_the_end_is_the_end(void **state)
{
	struct world *world = *state;
	struct output_cursor *cursor;
	struct output_piece piece;
	char data[8];

	open_log(world, MIN_BYTES);
	append(world, 1, "abc", 3);
	cursor = output_cursor_new(world->log, 1000);
	output_cursor_read(cursor, data, sizeof(data), &piece);
	assert_int_equal(piece.kind, OUTPUT_NONE);
	append(world, 1, "def", 3);
	output_cursor_read(cursor, data, sizeof(data), &piece);
	assert_int_equal(piece.offset, 3);
	assert_int_equal(piece.next, 6);
	output_cursor_free(cursor);
}

/* --- the bound --- */

static void a_file_is_filled_to_its_last_byte(void **state)
{
	struct world *world = *state;
	int fds = count_fds();

	open_log(world, MIN_BYTES);
	append_random(world, 1, ROOM - 1);
	append_random(world, 1, 1);
	assert_int_equal(each_file(world, NULL), 1);
	assert_int_equal(file_size(world, "7-0"), SEGMENT);
	append_random(world, 1, 1);
	assert_int_equal(each_file(world, NULL), 2);
	assert_int_equal(file_size(world, "7-1ff4"), MARK + 5);
	assert_int_equal(count_fds(), fds + 2);
	assert_all_kept(world);
	assert_int_equal(world->count, 2);
	assert_false(world->pieces[0].is.is_run_end); /* the run goes on in the next file */
	for (uint64_t from = SEGMENT - 12; from <= world->len; from++) {
		read_all(world, from, 3);
		assert_int_equal(world->kept, world->len - from);
	}
}

static void a_record_of_the_other_stream_needs_room_for_a_byte(void **state)
{
	struct world *world = *state;

	for (size_t left = 0; left <= 6; left++) {
		open_log(world, MIN_BYTES);
		append_random(world, 1, ROOM - left);
		append_random(world, 2, 1);
		assert_int_equal(each_file(world, NULL), left < 5 ? 2 : 1);
		assert_all_kept(world);
		assert_int_equal(world->count, 2);
		assert_true(world->pieces[0].is.is_run_end);
		clear(world);
	}
}

static void the_bound_holds_and_head_and_tail_are_exact(void **state)
{
	static const uint64_t bounds[] = {MIN_BYTES, MIN_BYTES + 1, 100000, 256 << 10};
	static const size_t pieces[] = {1, 9, 100, 5000, 60000, 300000};
	struct world *world = *state;

	for (size_t i = 0; i < array_len(bounds) * array_len(pieces); i++) {
		uint64_t bound = bounds[i % array_len(bounds)], cut,
			 segment = bound / 8 / 4096 * 4096;
		size_t piece = pieces[i / array_len(bounds)];
		/* Single bytes of changing streams take five: the overhead is part of the bound. */
		uint64_t overhead = piece == 1 ? 5 : 2;

		open_log(world, bound);
		while (world->len < 3 * bound) {
			append_random(world, next_random(world) % 2 ? 1 : 2,
				1 + next_random(world) % piece);
			if (piece > 100 || next_random(world) % 64 == 0)
				assert_in_range(sum_sizes(world), 0, bound);
		}
		assert_in_range(sum_sizes(world), bound - segment - 4096 * 2, bound);
		read_all(world, 0, 1 << 20);
		if (world->count == PIECES_MAX) { /* too many to look at */
			clear(world);
			continue;
		}
		assert_int_equal(count_cuts(world, &cut), 1);
		assert_int_equal(world->kept + cut, world->len);
		assert_int_equal(world->pieces[0].is.offset, 0);
		assert_true(is_bytes(&world->pieces[0].is));
		assert_true(is_bytes(&world->pieces[world->count - 1].is));
		assert_true(world->kept >= (bound - 2 * segment) / overhead);
		clear(world);
	}
}

static void head_and_tail_are_each_about_half(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	open_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++) {
		append_random(world, 1, 100);
		assert_in_range(sum_sizes(world), 0, MIN_BYTES);
	}
	read_all(world, 0, 1 << 20);
	assert_int_equal(count_cuts(world, &cut), 1);
	assert_int_equal(world->pieces[4].is.kind, OUTPUT_CUT);
	assert_int_equal(world->pieces[4].is.offset, 4 * ROOM);
	assert_in_range(world->len - world->pieces[4].is.next, 3 * ROOM, 4 * ROOM);
	/* From inside the cut, the rest of it comes first. */
	read_all(world, world->pieces[4].is.offset + 1000, 1 << 20);
	assert_int_equal(world->pieces[0].is.kind, OUTPUT_CUT);
	assert_true(is_bytes(&world->pieces[1].is));
}

static void one_append_may_be_larger_than_the_bound(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 20 * MIN_BYTES);
	assert_in_range(sum_sizes(world), 0, MIN_BYTES);
	read_all(world, 0, 4096);
	assert_int_equal(count_cuts(world, &cut), 1);
	assert_int_equal(world->kept, 8 * ROOM - (ROOM - world->len % ROOM));
}

static void a_log_goes_on_after_each_reopening(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	for (size_t i = 0; i < 600; i++) {
		open_log(world, MIN_BYTES);
		assert_int_equal(output_log_end(world->log), world->len);
		append_random(world, next_random(world) % 2 ? 1 : 2, next_random(world) % 1000);
		assert_in_range(sum_sizes(world), 0, MIN_BYTES);
		output_log_unref(take_ptr(&world->log));
	}
	open_log(world, MIN_BYTES);
	read_all(world, 0, 65536);
	assert_int_equal(count_cuts(world, &cut), 1);
	assert_int_equal(world->kept + cut, world->len);
	assert_in_range(world->kept, MIN_BYTES - 3 * SEGMENT, MIN_BYTES);
}

static void a_log_with_a_larger_bound_shrinks(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	open_log(world, 1 << 20);
	append_random(world, 1, 3 << 20);
	reopen_log(world, MIN_BYTES);
	read_all(world, 0, 65536);
	append_random(world, 1, 1);
	assert_in_range(sum_sizes(world), 0, MIN_BYTES);
	read_all(world, 0, 65536);
	count_cuts(world, &cut);
	assert_int_equal(world->kept + cut, world->len);
	assert_true(is_bytes(&world->pieces[world->count - 1].is));
}

static void a_cursor_finishes_a_file_that_was_removed(void **state)
{
	struct world *world = *state;
	struct output_cursor *cursor;
	struct output_piece piece;
	uint64_t at = 5 * SEGMENT - 1000, file_end = 5 * ROOM;
	uint8_t data[777];
	bool was_cut = false;

	open_log(world, MIN_BYTES);
	append_random(world, 1, (size_t)at + 10);
	cursor = output_cursor_new(world->log, at);
	output_cursor_read(cursor, data, 3, &piece);
	assert_piece(world, &piece, data);
	/* The file grows, is full, and goes, all behind the cursor's back. */
	append_random(world, 2, 100);
	append_random(world, 1, 2 * MIN_BYTES);
	for (at += 3;; at = piece.next) {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		assert_int_equal(piece.offset, at);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert_piece(world, &piece, data);
		if (piece.kind != OUTPUT_CUT)
			continue;
		assert_false(was_cut);
		was_cut = true;
		/* Two more headers than in a file of one stream. */
		assert_int_equal(piece.offset, file_end - 8);
	}
	assert_true(was_cut);
	assert_int_equal(at, world->len);
	output_cursor_free(cursor);
}

/* --- gaps --- */

static void a_skip_is_a_cut_and_is_remembered(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	append(world, 1, "abc", 3);
	output_log_skip(world->log, 3); /* nothing */
	output_log_skip(world->log, UINT64_MAX);
	assert_int_equal(output_log_end(world->log), 3);
	output_log_skip(world->log, 1000);
	world->len = 1000;
	for (int round = 0; round < 2; round++) {
		read_all(world, 0, 64);
		assert_int_equal(world->count, 2);
		assert_true(world->pieces[0].is.is_run_end);
		assert_int_equal(world->pieces[1].is.kind, OUTPUT_CUT);
		assert_int_equal(world->pieces[1].is.next, 1000);
		reopen_log(world, MIN_BYTES);
	}
	for (size_t i = 0; i < 100; i++)
		output_log_skip(world->log, world->len += 10);
	assert_int_equal(each_file(world, NULL), 2);
	append(world, 1, "def", 3);
	read_all(world, 0, 64);
	assert_int_equal(world->count, 3);
	assert_int_equal(world->kept, 6);
	read_all(world, 500, 64);
	assert_int_equal(world->count, 2);
}

static void many_skips_do_not_make_too_many_files(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++) {
		append(world, 1, "x", 1);
		output_log_skip(world->log, world->len += 10);
		assert_in_range(sum_sizes(world), 0, MIN_BYTES);
	}
	assert_in_range(each_file(world, NULL), 2, MIN_BYTES / 4096 + 1);
	read_all(world, 0, 64);
}

/* Whatever the disk takes is kept, what it does not is a cut, and afterwards all is well again. */
static void a_full_disk_leaves_a_cut(void **state)
{
	struct world *world = *state;

	for (long long room = 0; room < 120; room++) {
		uint64_t cut, taken;

		open_log(world, MIN_BYTES);
		append_mixed(world, 4);
		disk_left = room;
		append_mixed(world, 20);
		append_random(world, 1, 100);
		assert_int_equal(disk_left, 0);
		disk_left = -1;
		taken = world->len;
		append(world, 2, "back again", 10);
		for (int round = 0; round < 2; round++) {
			for (uint64_t from = 0; from <= world->len; from += 7)
				read_all(world, from, 16);
			read_all(world, 0, 1024);
			assert_true(count_cuts(world, &cut) >= 1);
			assert_int_equal(world->kept + cut, world->len);
			assert_true(world->kept <= taken);
			assert_int_equal(world->pieces[world->count - 1].is.offset, taken);
			reopen_log(world, MIN_BYTES);
		}
		clear(world);
	}
}

static void a_disk_that_is_full_from_the_beginning_has_no_file(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	disk_left = 0;
	append_random(world, 1, 100);
	append_random(world, 2, 100);
	read_all(world, 0, 64);
	assert_int_equal(world->count, 1);
	assert_int_equal(world->pieces[0].is.kind, OUTPUT_CUT);
	assert_int_equal(each_file(world, NULL), 0);
	disk_left = -1;
	append(world, 1, "abc", 3);
	read_all(world, 150, 64);
	assert_int_equal(world->count, 2);
	assert_int_equal(world->kept, 3);
}

static void a_record_that_cannot_be_ended_ends_its_file(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	append(world, 1, "abc", 3);
	headers_fail = true;
	append(world, 2, "lost", 4);
	headers_fail = false;
	append(world, 2, "def", 3);
	for (int round = 0; round < 2; round++) {
		read_all(world, 0, 64);
		assert_int_equal(world->count, 3);
		assert_int_equal(world->kept, 6);
		reopen_log(world, MIN_BYTES);
	}
}

static void a_directory_that_is_gone_is_a_cut(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	rmdir(world->dir);
	append_random(world, 1, 100);
	read_all(world, 0, 64);
	assert_int_equal(world->count, 1);
	assert_int_equal(world->pieces[0].is.kind, OUTPUT_CUT);
}

static void a_file_that_cannot_be_read_is_a_cut(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 3 * SEGMENT);
	unlinkat(world->dir_fd, "7-1ff4", 0);
	read_all(world, 0, 65536);
	assert_int_equal(count_cuts(world, &cut), 1);
	assert_int_equal(cut, ROOM);
	unlinkat(world->dir_fd, "7-5fdc", 0); /* the last, which is being written */
	read_all(world, 0, 65536);
	assert_int_equal(world->kept, ROOM + ROOM);
	append_random(world, 1, 10);
	read_all(world, 0, 65536);
	assert_int_equal(truncate(world->dir, 0), -1);
}

/* --- after a crash --- */

static void a_file_cut_short_anywhere_keeps_what_is_there(void **state)
{
	struct world *world = *state;
	uint8_t *content, *bytes = mem_new(1024), *streams = mem_new(1024);
	uint64_t size, len, start;
	int fd;

	/* The last file is a second one. */
	open_log(world, MIN_BYTES);
	append_random(world, 1, ROOM);
	start = world->len;
	append_mixed(world, 60);
	output_log_unref(take_ptr(&world->log));
	size = file_size(world, "7-1ff4");
	len = world->len;
	content = mem_new(size);
	fd = openat(world->dir_fd, "7-1ff4", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, content, size), size);
	close(fd);
	memcpy(bytes, world->bytes + start, len - start);
	memcpy(streams, world->streams + start, len - start);
	for (uint64_t cut = 0; cut <= size; cut++) {
		uint64_t end;

		put_file(world, "7-1ff4", content, cut);
		open_log(world, MIN_BYTES);
		end = output_log_end(world->log);
		/* Never more than there is, and no more lost than headers take. */
		assert_in_range(end, start, len);
		assert_true(end - start <= (cut > MARK + 4 ? cut - MARK - 4 : 0));
		assert_true(cut < size || end == len);
		world->len = end;
		assert_all_kept(world);
		/* It goes on, at first with more of the same. */
		append_random(world, end > start ? world->streams[end - 1] : 1, 300);
		reopen_log(world, MIN_BYTES);
		assert_all_kept(world);
		append_random(world, 2, 5);
		append_random(world, 1, 5);
		assert_all_kept(world);
		output_log_unref(take_ptr(&world->log));
		open_log(world, MIN_BYTES);
		assert_all_kept(world);
		output_log_unref(take_ptr(&world->log));
		memcpy(world->bytes + start, bytes, len - start);
		memcpy(world->streams + start, streams, len - start);
	}
	free(content);
	free(bytes);
	free(streams);
}

/* The daemon died between writing bytes and saying that they are there: the agent will send them again. */
static void bytes_without_their_mark_are_not_there(void **state)
{
	struct world *world = *state;
	uint64_t size;
	int fd;

	open_log(world, MIN_BYTES);
	append(world, 1, "hello ", 6);
	size = file_size(world, "7-0");
	output_log_unref(take_ptr(&world->log));
	fd = openat(world->dir_fd, "7-0", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "world, at length", 16), 16);
	close(fd);
	open_log(world, MIN_BYTES);
	assert_int_equal(output_log_end(world->log), 6);
	append(world, 1, "world", 5);
	reopen_log(world, MIN_BYTES);
	assert_all_kept(world);
	assert_int_equal(world->count, 1);
	append(world, 2, "!", 1);
	reopen_log(world, MIN_BYTES);
	assert_all_kept(world);
	assert_int_equal(file_size(world, "7-0"), size + 16);
}

/* What a file had before it was used again is never taken for what it has. */
static void a_file_that_is_used_again_says_nothing_old(void **state)
{
	struct world *world = *state;
	ino_t first;
	struct stat st;
	char name[32];
	uint64_t at;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 4 * ROOM + 1);
	assert_int_equal(fstatat(world->dir_fd, "7-7fd0", &st, 0), 0); /* the first of the tail */
	first = st.st_ino;
	append_random(world, 1, 4 * ROOM - 1);
	at = world->len;
	append_random(world, 2, 3);
	snprintf(name, sizeof(name), "7-%llx", (unsigned long long)at);
	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	assert_int_equal(st.st_ino, first);
	assert_int_equal(st.st_size, SEGMENT);
	assert_int_equal(faccessat(world->dir_fd, "7-7fd0", F_OK, 0), -1);
	for (size_t i = 0; i < 3; i++) {
		reopen_log(world, MIN_BYTES);
		assert_int_equal(output_log_end(world->log), world->len);
		read_all(world, at, 64);
		assert_int_equal(world->kept, world->len - at);
		append_random(world, 1 + (int)i % 2, 5);
		assert_in_range(sum_sizes(world), 0, MIN_BYTES);
	}
}

/* Reads all, whatever it is: offsets must go up, and it must end. */
static void read_anything(struct output_log *log, uint64_t from)
{
	struct output_cursor *cursor = output_cursor_new(log, from);
	uint64_t end = output_log_end(log), at = from < end ? from : end;
	struct output_piece piece;
	uint8_t data[512];

	for (;;) {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		assert_int_equal(piece.offset, at);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert_true(piece.next > piece.offset);
		at = piece.next;
	}
	assert_int_equal(at, end);
	output_cursor_free(cursor);
}

static void garbage_is_a_cut(void **state)
{
	struct world *world = *state;
	uint8_t garbage[300];

	for (size_t round = 0; round < 4000; round++) {
		char name[32];
		size_t files = 1 + next_random(world) % 5;

		for (size_t i = 0; i < files; i++) {
			size_t len = next_random(world) % sizeof(garbage);
			bool small = next_random(world) % 2;

			/* Small lengths make many records; zeros make none. */
			for (size_t k = 0; k < len; k++)
				garbage[k] = small ? (k % 4 ? 0 : next_random(world) % 16)
						   : (uint8_t)next_random(world);
			/* Behind a mark, as a rule: anything else is an empty file. */
			if (next_random(world) % 4 && len >= MARK) {
				memcpy(garbage, "\0\0\0\0GOLS", MARK);
				garbage[0] = (uint8_t)next_random(world);
				garbage[1] = (uint8_t)(next_random(world) % 2);
			}
			snprintf(name, sizeof(name), "7-%llx",
				(unsigned long long)(next_random(world) % 400));
			put_file(world, name, garbage, len);
		}
		open_log(world, MIN_BYTES);
		for (uint64_t from = 0; from < 500; from += 1 + next_random(world) % 50)
			read_anything(world->log, from);
		world->len = output_log_end(world->log);
		append_random(world, 1, 10);
		read_anything(world->log, 0);
		read_all(world, world->len - 10, 64);
		assert_int_equal(world->kept, 10);
		clear(world);
	}
}

static void a_missing_file_is_a_cut(void **state)
{
	static const char *const names[] = {"7-0", "7-1ff4", "7-3fe8"};
	struct world *world = *state;

	for (size_t i = 0; i < array_len(names); i++) {
		open_log(world, MIN_BYTES);
		append_random(world, 1, 4 * ROOM);
		output_log_unref(take_ptr(&world->log));
		assert_int_equal(unlinkat(world->dir_fd, names[i], 0), 0);
		open_log(world, MIN_BYTES);
		read_all(world, 0, 65536);
		assert_int_equal(world->count, 4);
		assert_int_equal(world->pieces[i].is.kind, OUTPUT_CUT);
		assert_int_equal(world->kept, 3 * ROOM);
		clear(world);
	}
}

/* --- the directory --- */

static void files_of_others_are_left_alone(void **state)
{
	static const char *const others[] = {"7", "7-", "7-g", "7-00", "7-0x0", "7-A", "07-0",
		"-7-0", "7-0.tmp", "7-ffffffffffffffff", "7-10000000000000000", "77-0", "8-0",
		"readme"};
	struct world *world = *state;
	struct output_log *eighth;
	struct err err;

	for (size_t i = 0; i < array_len(others); i++)
		put_file(world, others[i], "\x0e\0\0\0GOLS\x04\0\0\0ab", 14);
	assert_int_equal(mkdirat(world->dir_fd, "7-5", 0700), 0);
	assert_int_equal(symlinkat("8-0", world->dir_fd, "7-6"), 0);
	open_log(world, MIN_BYTES);
	assert_int_equal(output_log_end(world->log), 0);
	append(world, 1, "seven", 5);
	assert_int_equal(output_log_open(world->dir_fd, 8, MIN_BYTES, &eighth, &err), 0);
	assert_int_equal(output_log_end(eighth), 2);
	output_log_append(eighth, 2, "eight", 5);
	assert_all_kept(world);
	output_log_unref(eighth);
	output_log_unref(take_ptr(&world->log));
	output_log_remove(world->dir_fd, PROCESS);
	assert_int_equal(faccessat(world->dir_fd, "7-0", F_OK, 0), -1);
	for (size_t i = 0; i < array_len(others); i++)
		assert_int_equal(file_size(world, others[i]), strcmp(others[i], "8-0") ? 14 : 23);
	output_log_remove(world->dir_fd, 12345); /* nothing to remove */
}

static void all_files_of_a_process_are_removed(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 5 * MIN_BYTES);
	assert_true(each_file(world, NULL) >= 7);
	output_log_unref(take_ptr(&world->log));
	output_log_remove(world->dir_fd, PROCESS);
	assert_int_equal(each_file(world, NULL), 0);
	open_log(world, MIN_BYTES);
	assert_int_equal(output_log_end(world->log), 0);
}

static void a_directory_that_cannot_be_read_is_an_error(void **state)
{
	struct world *world = *state;
	struct output_log *log = NULL;
	struct err err = {0};

	assert_true(output_log_open(-1, PROCESS, MIN_BYTES, &log, &err) < 0);
	assert_null(log);
	assert_non_null(strstr(err.message, "process 7"));
	(void)world;
}

/* --- scrollback --- */

static void the_tail_begins_with_a_line(void **state)
{
	struct world *world = *state;
	static const char line[] = "0123456789\n", wide[] = "\xe2\x82\xac";
	uint64_t at;

	open_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++)
		append(world, 1, line, 11);
	assert_int_equal(output_cursor_tail(world->log, 1 << 20), 0);
	assert_int_equal(output_cursor_tail(world->log, 0), world->len);
	for (uint64_t bytes = 44; bytes < 400; bytes++) {
		at = output_cursor_tail(world->log, bytes);
		assert_int_equal(at % 11, 0);
		assert_in_range(world->len - at, bytes - 10, bytes);
	}
	at = world->len;
	for (size_t i = 0; i < 1000; i++)
		append(world, 1, wide, 3);
	for (uint64_t bytes = 3; bytes < 400; bytes++) {
		assert_int_equal((output_cursor_tail(world->log, bytes) - at) % 3, 0);
		assert_in_range(
			world->len - output_cursor_tail(world->log, bytes), bytes - 2, bytes);
	}
	/* What is cut is not waited for. */
	output_log_skip(world->log, world->len += 100);
	append(world, 1, line, 11);
	assert_int_equal(output_cursor_tail(world->log, 50), world->len - 11);
}

/* --- at the same time --- */

#define RACE_BYTES (24ull << 20)

struct race {
	struct output_log *log;
	atomic_bool done;
	_Atomic(const char *) wrong; /* what a reader saw */
	atomic_ullong kept, cut;
};

static uint8_t race_byte(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15ull) >> 40);
}

static int race_stream(uint64_t offset)
{
	return (offset / 37 * 0x9e3779b97f4a7c15ull) >> 63 ? 1 : 2;
}

static void *race_append(void *arg)
{
	struct race *race = arg;
	uint64_t offset = 0, seed = 1;
	uint8_t data[8192];

	while (offset < RACE_BYTES) {
		size_t len = 0, want;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		want = 1 + (seed >> 33) % ((seed >> 60) ? 300 : sizeof(data));
		for (; len < want; len++) {
			if (race_stream(offset + len) != race_stream(offset))
				break;
			data[len] = race_byte(offset + len);
		}
		output_log_append(race->log, race_stream(offset), data, len);
		offset += len;
	}
	race->done = true;
	return NULL;
}

static const char *race_check(const struct output_piece *piece, uint64_t at, const uint8_t *data)
{
	if (piece->offset != at || piece->next <= at)
		return "an offset out of order";
	if (!is_bytes(piece))
		return NULL;
	for (uint64_t i = at; i < piece->next; i++) {
		if (data[i - at] != race_byte(i))
			return "a wrong byte";
		if (race_stream(i) != (piece->kind == OUTPUT_STDOUT ? 1 : 2))
			return "a byte of the other stream";
	}
	return NULL;
}

/* Follows from an offset for a number of pieces, or to the end. */
static void race_follow(struct race *race, uint64_t from, size_t size, uint64_t pieces)
{
	struct output_piece before = {0};
	struct output_cursor *cursor = output_cursor_new(race->log, from);
	uint8_t *data = mem_new(size);
	struct output_piece piece;
	const char *wrong;
	uint64_t at = from;

	for (; pieces > 0 && !race->wrong; pieces--) {
		bool was_done = race->done;

		output_cursor_read(cursor, data, size, &piece);
		if (piece.kind == OUTPUT_NONE) {
			if (was_done && at != output_log_end(race->log))
				race->wrong = "an end that is none";
			if (was_done)
				break;
			sched_yield();
			continue;
		}
		wrong = race_check(&piece, at, data);
		if (before.is_run_end && piece.kind == before.kind && is_bytes(&piece))
			wrong = "a run that went on after its end";
		before = piece;
		if (wrong)
			race->wrong = wrong;
		if (is_bytes(&piece))
			race->kept += piece.next - at;
		else
			race->cut += piece.next - at;
		at = piece.next;
	}
	output_cursor_free(cursor);
	free(data);
}

static void *race_read_small(void *arg)
{
	race_follow(arg, 0, 61, UINT64_MAX);
	return NULL;
}

static void *race_read_large(void *arg)
{
	race_follow(arg, 0, 65536, UINT64_MAX);
	return NULL;
}

static void *race_read_anywhere(void *arg)
{
	struct race *race = arg;
	uint64_t seed = 3;

	while (!race->done && !race->wrong) {
		uint64_t end = output_log_end(race->log), back;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		back = (seed >> 33) % (2 * MIN_BYTES);
		race_follow(race, back < end ? end - back : 0, 1000, 200);
	}
	return NULL;
}

static void readers_never_see_a_wrong_byte(void **state)
{
	static void *(*const roles[])(void *) = {
		race_append, race_read_small, race_read_large, race_read_anywhere};
	struct world *world = *state;
	struct race race = {0};
	pthread_t threads[array_len(roles)];

	open_log(world, 2 * MIN_BYTES);
	race.log = world->log;
	for (size_t i = 0; i < array_len(roles); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, roles[i], &race), 0);
	for (size_t i = 0; i < array_len(roles); i++)
		pthread_join(threads[i], NULL);
	if (race.wrong)
		fail_msg("a reader saw %s", (const char *)race.wrong);
	assert_true(race.kept > 0);
	assert_in_range(sum_sizes(world), 0, 2 * MIN_BYTES);
	race.kept = race.cut = 0;
	race_follow(&race, 0, 65536, UINT64_MAX);
	assert_null(race.wrong);
	assert_int_equal(race.kept + race.cut, output_log_end(world->log));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(an_empty_log_costs_no_file),
		T(a_small_log_costs_one_file_and_its_descriptor),
		T(single_bytes_of_one_stream_are_one_record),
		T(reading_goes_on_from_every_offset),
		T(a_cursor_follows_every_append),
		T(an_offset_beyond_the_end_is_the_end),
		T(a_file_is_filled_to_its_last_byte),
		T(a_record_of_the_other_stream_needs_room_for_a_byte),
		T(the_bound_holds_and_head_and_tail_are_exact),
		T(head_and_tail_are_each_about_half),
		T(one_append_may_be_larger_than_the_bound),
		T(a_log_goes_on_after_each_reopening),
		T(a_log_with_a_larger_bound_shrinks),
		T(a_cursor_finishes_a_file_that_was_removed),
		T(a_skip_is_a_cut_and_is_remembered),
		T(many_skips_do_not_make_too_many_files),
		T(a_full_disk_leaves_a_cut),
		T(a_disk_that_is_full_from_the_beginning_has_no_file),
		T(a_record_that_cannot_be_ended_ends_its_file),
		T(a_directory_that_is_gone_is_a_cut),
		T(a_file_that_cannot_be_read_is_a_cut),
		T(a_file_cut_short_anywhere_keeps_what_is_there),
		T(bytes_without_their_mark_are_not_there),
		T(a_file_that_is_used_again_says_nothing_old),
		T(garbage_is_a_cut),
		T(a_missing_file_is_a_cut),
		T(files_of_others_are_left_alone),
		T(all_files_of_a_process_are_removed),
		T(a_directory_that_cannot_be_read_is_an_error),
		T(the_tail_begins_with_a_line),
		T(readers_never_see_a_wrong_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
