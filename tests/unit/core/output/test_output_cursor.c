/* SPDX-License-Identifier: Apache-2.0 */
/* Reading kept output, from any offset, while it grows and while files of it go. */
#include "base/clock.h"
#include "output_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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
		assert_int_equal(piece.offset, file_end - 2 * 16);
	}
	assert_true(was_cut);
	assert_int_equal(at, world->len);
	output_cursor_free(cursor);
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
		output_log_append(race->log, race_stream(offset), clock_wall_ms(), data, len);
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
		T(reading_goes_on_from_every_offset),
		T(a_cursor_follows_every_append),
		T(an_offset_beyond_the_end_is_the_end),
		T(a_cursor_finishes_a_file_that_was_removed),
		T(the_tail_begins_with_a_line),
		T(readers_never_see_a_wrong_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
