/* SPDX-License-Identifier: Apache-2.0 */
/* Files of kept output as a daemon finds them: after a crash, damaged, or not ours. */
#include "base/clock.h"
#include "core/output/output_segment.h"
#include "output_world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

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
	size = file_size(world, "7-1fe8");
	len = world->len;
	content = mem_new(size);
	fd = openat(world->dir_fd, "7-1fe8", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, content, size), size);
	close(fd);
	memcpy(bytes, world->bytes + start, len - start);
	memcpy(streams, world->streams + start, len - start);
	for (uint64_t cut = 0; cut <= size; cut++) {
		uint64_t end;

		put_file(world, "7-1fe8", content, cut);
		open_log(world, MIN_BYTES);
		end = output_log_end(world->log);
		/* Never more than there is, and no more lost than headers take. */
		assert_in_range(end, start, len);
		assert_true(end - start <= (cut > MARK + 16 ? cut - MARK - 16 : 0));
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
	assert_int_equal(file_size(world, "7-0"), size + 5 + 17);
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
	assert_int_equal(fstatat(world->dir_fd, "7-7fa0", &st, 0), 0); /* the first of the tail */
	first = st.st_ino;
	append_random(world, 1, 4 * ROOM - 1);
	at = world->len;
	append_random(world, 2, 3);
	snprintf(name, sizeof(name), "7-%llx", (unsigned long long)at);
	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	assert_int_equal(st.st_ino, first);
	assert_int_equal(st.st_size, SEGMENT);
	assert_int_equal(faccessat(world->dir_fd, "7-7fa0", F_OK, 0), -1);
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
	static const char *const names[] = {"7-0", "7-1fe8", "7-3fd0"};
	struct world *world = *state;

	for (size_t i = 0; i < array_len(names); i++) {
		open_log(world, MIN_BYTES);
		append_random(world, 1, 4 * ROOM);
		output_log_unref(take_ptr(&world->log));
		assert_int_equal(unlinkat(world->dir_fd, names[i], 0), 0);
		open_log(world, MIN_BYTES);
		read_all(world, 0, 65536);
		assert_int_equal(world->count, 4);
		assert_int_equal(world->pieces[i].kind, OUTPUT_CUT);
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
	output_log_append(eighth, 2, clock_wall_ms(), "eight", 5);
	assert_all_kept(world);
	output_log_unref(eighth);
	output_log_unref(take_ptr(&world->log));
	output_segment_remove_all(world->dir_fd, PROCESS);
	assert_int_equal(faccessat(world->dir_fd, "7-0", F_OK, 0), -1);
	for (size_t i = 0; i < array_len(others); i++)
		assert_int_equal(
			file_size(world, others[i]), strcmp(others[i], "8-0") ? 14 : 14 + 16 + 5);
	output_segment_remove_all(world->dir_fd, 12345); /* nothing to remove */
}

static void all_files_of_a_process_are_removed(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 5 * MIN_BYTES);
	assert_true(each_file(world, NULL) >= 7);
	output_log_unref(take_ptr(&world->log));
	output_segment_remove_all(world->dir_fd, PROCESS);
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_file_cut_short_anywhere_keeps_what_is_there),
		T(bytes_without_their_mark_are_not_there),
		T(a_file_that_is_used_again_says_nothing_old),
		T(garbage_is_a_cut),
		T(a_missing_file_is_a_cut),
		T(files_of_others_are_left_alone),
		T(all_files_of_a_process_are_removed),
		T(a_directory_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
