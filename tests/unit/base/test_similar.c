/* SPDX-License-Identifier: Apache-2.0 */
#include "base/similar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void each_slip_of_the_hand_counts_one(void **state)
{
	(void)state;
	assert_int_equal(similar_distance("stop", "stop"), 0);
	assert_int_equal(similar_distance("stop", "stpo"), 1);
	assert_int_equal(similar_distance("stop", "stp"), 1);
	assert_int_equal(similar_distance("stop", "sttop"), 1);
	assert_int_equal(similar_distance("stop", "stip"), 1);
	assert_int_equal(similar_distance("start", "stpo"), 3);
	assert_int_equal(similar_distance("", "ls"), 2);
}

static void a_word_longer_than_any_command_is_like_none(void **state)
{
	char word[4096];

	(void)state;
	memset(word, 'a', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	assert_true(similar_distance(word, word) > SIMILAR_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_slip_of_the_hand_counts_one),
		cmocka_unit_test(a_word_longer_than_any_command_is_like_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
