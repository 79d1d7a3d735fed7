/* SPDX-License-Identifier: Apache-2.0 */
/* Kept output that grows: its bound, its head and tail, and what a full disk leaves out. */
#include "fd_count.h"
#include "output_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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
	assert_int_equal(file_size(world, "7-0"), MARK + 16 + 6 + 16 + 5);
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
	assert_int_equal(file_size(world, "7-0"), MARK + 16 + 1000);
	reopen_log(world, MIN_BYTES);
	for (size_t i = 0; i < 1000; i++)
		append(world, 1, &(char){(char)i}, 1);
	assert_int_equal(file_size(world, "7-0"), MARK + 16 + 2000);
	assert_all_kept(world);
	assert_int_equal(world->count, 1);
}

static void bytes_that_come_later_have_a_time_of_their_own(void **state)
{
	static const int64_t times[] = {5000, 5009, 5010, 5015, 5025, 4000};
	static const int64_t expected[] = {5000, 5010, 5025, 4000};
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	for (size_t i = 0; i < array_len(times); i++) {
		output_now_ms = times[i];
		append(world, 1, "x", 1);
		if (i == 2)
			reopen_log(world, MIN_BYTES);
	}
	output_now_ms = 1;
	for (int round = 0; round < 2; round++) {
		assert_all_kept(world);
		assert_int_equal(world->count, array_len(expected));
		for (size_t i = 0; i < array_len(expected); i++) {
			assert_int_equal(world->pieces[i].at_ms, expected[i]);
			assert_false(world->pieces[i].is_run_end);
		}
		read_all(world, 4, 16); /* whoever comes back to the open one need not walk */
		assert_int_equal(world->pieces[0].at_ms, 5025);
		reopen_log(world, MIN_BYTES);
	}
}

/* Headers of earlier versions: no times. Their files are read, and grow by records that have one. */
static void files_of_earlier_versions_are_read_and_go_on(void **state)
{
	static const char old[] = "\x19\0\0\0GOLS\x04\0\0\0ab\x03\0\0\0c\xfe\xff\xff\xff"
				  "de";
	struct world *world = *state;

	put_file(world, "7-0", old, sizeof(old) - 1);
	open_log(world, MIN_BYTES);
	assert_int_equal(output_log_end(world->log), 5);
	memcpy(world->bytes, "abcde", 5);
	memcpy(world->streams, "\1\1\2\1\1", 5);
	world->len = 5;
	output_now_ms = 77;
	append(world, 1, "new", 3);
	output_now_ms = 1;
	for (int round = 0; round < 2; round++) {
		assert_all_kept(world);
		assert_int_equal(world->count, 4);
		assert_int_equal(world->pieces[2].at_ms, 0);
		assert_int_equal(world->pieces[3].at_ms, 77);
		reopen_log(world, MIN_BYTES);
	}
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
	assert_int_equal(file_size(world, "7-1fe8"), MARK + 17);
	assert_int_equal(count_fds(), fds + 2);
	assert_all_kept(world);
	assert_int_equal(world->count, 2);
	assert_false(world->pieces[0].is_run_end); /* the run goes on in the next file */
	for (uint64_t from = SEGMENT - 12; from <= world->len; from++) {
		read_all(world, from, 3);
		assert_int_equal(world->kept, world->len - from);
	}
}

static void a_record_of_the_other_stream_needs_room_for_a_byte(void **state)
{
	struct world *world = *state;

	for (size_t left = 0; left <= 18; left++) {
		open_log(world, MIN_BYTES);
		append_random(world, 1, ROOM - left);
		append_random(world, 2, 1);
		assert_int_equal(each_file(world, NULL), left < 17 ? 2 : 1);
		assert_all_kept(world);
		assert_int_equal(world->count, 2);
		assert_true(world->pieces[0].is_run_end);
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
		/* Single bytes of changing streams take 17: the overhead is part of the bound. */
		uint64_t overhead = piece < 64 ? 17 : 2;

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
		assert_int_equal(world->pieces[0].offset, 0);
		assert_true(is_bytes(&world->pieces[0]));
		assert_true(is_bytes(&world->pieces[world->count - 1]));
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
	assert_int_equal(world->pieces[4].kind, OUTPUT_CUT);
	assert_int_equal(world->pieces[4].offset, 4 * ROOM);
	assert_in_range(world->len - world->pieces[4].next, 3 * ROOM, 4 * ROOM);
	/* From inside the cut, the rest of it comes first. */
	read_all(world, world->pieces[4].offset + 1000, 1 << 20);
	assert_int_equal(world->pieces[0].kind, OUTPUT_CUT);
	assert_true(is_bytes(&world->pieces[1]));
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
	assert_true(is_bytes(&world->pieces[world->count - 1]));
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
		assert_true(world->pieces[0].is_run_end);
		assert_int_equal(world->pieces[1].kind, OUTPUT_CUT);
		assert_int_equal(world->pieces[1].next, 1000);
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
		output_disk.left = room;
		append_mixed(world, 20);
		append_random(world, 1, 100);
		assert_int_equal(output_disk.left, 0);
		output_disk.left = -1;
		taken = world->len;
		append(world, 2, "back again", 10);
		for (int round = 0; round < 2; round++) {
			for (uint64_t from = 0; from <= world->len; from += 7)
				read_all(world, from, 16);
			read_all(world, 0, 1024);
			assert_true(count_cuts(world, &cut) >= 1);
			assert_int_equal(world->kept + cut, world->len);
			assert_true(world->kept <= taken);
			assert_int_equal(world->pieces[world->count - 1].offset, taken);
			reopen_log(world, MIN_BYTES);
		}
		clear(world);
	}
}

static void a_disk_that_is_full_from_the_beginning_has_no_file(void **state)
{
	struct world *world = *state;

	open_log(world, MIN_BYTES);
	output_disk.left = 0;
	append_random(world, 1, 100);
	append_random(world, 2, 100);
	read_all(world, 0, 64);
	assert_int_equal(world->count, 1);
	assert_int_equal(world->pieces[0].kind, OUTPUT_CUT);
	assert_int_equal(each_file(world, NULL), 0);
	output_disk.left = -1;
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
	output_disk.headers_fail = true;
	append(world, 2, "lost", 4);
	output_disk.headers_fail = false;
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
	assert_int_equal(world->pieces[0].kind, OUTPUT_CUT);
}

static void a_file_that_cannot_be_read_is_a_cut(void **state)
{
	struct world *world = *state;
	uint64_t cut;

	open_log(world, MIN_BYTES);
	append_random(world, 1, 3 * SEGMENT);
	unlinkat(world->dir_fd, "7-1fe8", 0);
	read_all(world, 0, 65536);
	assert_int_equal(count_cuts(world, &cut), 1);
	assert_int_equal(cut, ROOM);
	unlinkat(world->dir_fd, "7-5fb8", 0); /* the last, which is being written */
	read_all(world, 0, 65536);
	assert_int_equal(world->kept, ROOM + ROOM);
	append_random(world, 1, 10);
	read_all(world, 0, 65536);
	assert_int_equal(truncate(world->dir, 0), -1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(an_empty_log_costs_no_file),
		T(a_small_log_costs_one_file_and_its_descriptor),
		T(single_bytes_of_one_stream_are_one_record),
		T(bytes_that_come_later_have_a_time_of_their_own),
		T(files_of_earlier_versions_are_read_and_go_on),
		T(a_file_is_filled_to_its_last_byte),
		T(a_record_of_the_other_stream_needs_room_for_a_byte),
		T(the_bound_holds_and_head_and_tail_are_exact),
		T(head_and_tail_are_each_about_half),
		T(one_append_may_be_larger_than_the_bound),
		T(a_log_goes_on_after_each_reopening),
		T(a_log_with_a_larger_bound_shrinks),
		T(a_skip_is_a_cut_and_is_remembered),
		T(many_skips_do_not_make_too_many_files),
		T(a_full_disk_leaves_a_cut),
		T(a_disk_that_is_full_from_the_beginning_has_no_file),
		T(a_record_that_cannot_be_ended_ends_its_file),
		T(a_directory_that_is_gone_is_a_cut),
		T(a_file_that_cannot_be_read_is_a_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
