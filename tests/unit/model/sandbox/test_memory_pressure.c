/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/memory_pressure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB	 (1ull << 20)
#define USER_MAX 8

/* A row of a table: whose, how much (MiB), idle for so long (0: in use), and a letter for it. */
struct row {
	const char *owner;
	uint64_t mib;
	int64_t idle_ms;
	char letter;
};

/* Stops one after the other until the host has its reserve; their letters in order. */
static void expect_order(const struct row *rows, size_t count, uint64_t available, uint64_t reserve,
	const char *order)
{
	struct memory_user users[USER_MAX];
	struct memory_choice choice;
	char stopped[USER_MAX + 1] = "";

	assert_true(count <= USER_MAX);
	for (size_t i = 0; i < count; i++) {
		users[i] = (struct memory_user){.bytes = rows[i].mib * MIB,
			.is_idle = rows[i].idle_ms > 0,
			.idle_ms = rows[i].idle_ms,
			.place = i};
		snprintf(users[i].owner.organization, MODEL_NAME_MAX, "org");
		snprintf(users[i].owner.user, MODEL_NAME_MAX, "%s", rows[i].owner);
	}
	memory_pressure_sort(users, count);
	while (memory_pressure_choose(users, count, available * MIB, reserve * MIB, &choice)) {
		const struct memory_user *user = &users[choice.index];

		assert_true(choice.owner_bytes >= user->bytes);
		stopped[strlen(stopped)] = rows[user->place].letter;
		available += user->bytes / MIB;
		memmove(&users[choice.index], &users[choice.index + 1],
			(--count - choice.index) * sizeof(users[0]));
	}
	assert_string_equal(stopped, order);
}

#define EXPECT(available, reserve, order, ...)                                                     \
	do {                                                                                       \
		const struct row rows[] = {__VA_ARGS__};                                           \
		expect_order(rows, array_len(rows), available, reserve, order);                    \
	} while (0)

static void a_host_with_its_reserve_loses_nobody(void **state)
{
	(void)state;
	EXPECT(128, 128, "", {"ann", 4000, 90000, 'a'}, {"bob", 10, 0, 'b'});
	expect_order(NULL, 0, 0, 128, "");
}

static void a_hog_goes_before_an_idle_neighbour(void **state)
{
	(void)state;
	EXPECT(28, 128, "h", {"ann", 20, 7200000, 'a'}, {"hog", 4000, 0, 'h'});
	EXPECT(28, 128, "h", {"hog", 4000, 0, 'h'}, {"ann", 20, 7200000, 'a'});
}

static void the_idle_of_the_hog_go_before_its_busy_ones(void **state)
{
	(void)state;
	EXPECT(0, 128, "iJh", {"ann", 20, 7200000, 'a'}, {"hog", 4000, 0, 'h'},
		{"hog", 60, 20000, 'J'}, {"hog", 5, 90000, 'i'}, {"hog", 300, 0, 'H'});
}

static void of_the_busy_the_largest_goes_first(void **state)
{
	(void)state;
	EXPECT(0, 128, "h", {"hog", 500, 0, 'l'}, {"hog", 900, 0, 'h'}, {"ann", 20, 1, 'a'});
}

static void no_more_are_stopped_than_needed(void **state)
{
	(void)state;
	EXPECT(100, 128, "b", {"ann", 30, 5000, 'a'}, {"ann", 30, 9000, 'b'},
		{"ann", 30, 7000, 'c'});
}

static void one_owner_with_many_small_ones_is_the_hog_too(void **state)
{
	(void)state;
	EXPECT(0, 100, "x", {"ann", 150, 0, 'a'}, {"bob", 110, 0, 'x'}, {"bob", 90, 0, 'y'});
}

/* Each stop changes who has most. */
static void two_hogs_take_turns(void **state)
{
	(void)state;
	EXPECT(0, 900, "xay", {"ann", 400, 0, 'a'}, {"ann", 100, 0, 'b'}, {"bob", 410, 0, 'x'},
		{"bob", 200, 0, 'y'}, {"eve", 5, 9000, 'e'});
}

static void if_the_cause_is_outside_only_the_idle_go(void **state)
{
	(void)state;
	EXPECT(0, 1000, "bac", {"ann", 10, 5000, 'a'}, {"bob", 90, 5000, 'b'}, {"bob", 5, 0, 'B'},
		{"eve", 2, 3000, 'c'});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_with_its_reserve_loses_nobody),
		cmocka_unit_test(a_hog_goes_before_an_idle_neighbour),
		cmocka_unit_test(the_idle_of_the_hog_go_before_its_busy_ones),
		cmocka_unit_test(of_the_busy_the_largest_goes_first),
		cmocka_unit_test(no_more_are_stopped_than_needed),
		cmocka_unit_test(one_owner_with_many_small_ones_is_the_hog_too),
		cmocka_unit_test(two_hogs_take_turns),
		cmocka_unit_test(if_the_cause_is_outside_only_the_idle_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
