/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/done_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ID    "01k9zq3v5h7n2m4p6r8t0w1x3y"
#define OTHER "01k9zq3v5h7n2m4p6r8t0w1x3z"

static bool put(struct done_line *line, const char *text)
{
	return done_line_put(line, (const uint8_t *)text, strlen(text));
}

static void the_line_is_found_in_whatever_pieces_it_comes(void **state)
{
	static const char text[] = "\n" ID " {\"result\":1}\n\n" ID
				   " {\"done\":{\"cpu_us\":12,\"memory\":34,\"outputs\":false}}\n";

	(void)state;
	for (size_t size = 1; size < sizeof(text); size++) {
		struct done_line line;
		bool found = false;

		done_line_init(&line, ID);
		for (size_t at = 0; at + 1 < sizeof(text); at += size) {
			size_t left = sizeof(text) - 1 - at;

			assert_false(found);
			found = done_line_put(
				&line, (const uint8_t *)text + at, left < size ? left : size);
		}
		assert_true(found);
		assert_int_equal(line.cpu_us, 12);
		assert_int_equal(line.memory_bytes, 34);
		assert_false(line.has_outputs);
	}
}

static void another_line_is_not_it(void **state)
{
	static const char *const others[] = {OTHER " {\"done\":{}}\n", "{\"done\":{}}\n",
		ID "{\"done\":{}}\n", ID " {\"done\":\n", ID " {\"result\":\"done\"}\n",
		"x" ID " {\"done\":{}}\n", ID "\n", ID " \n", "\n", ID " [\"done\"]\n",
		ID " {\"done\":{}} x\n"};
	struct done_line line;

	(void)state;
	done_line_init(&line, ID);
	for (size_t i = 0; i < array_len(others); i++)
		assert_false(put(&line, others[i]));
	assert_true(put(&line, ID " {\"done\":{\"cpu_us\":-1}}\n"));
	assert_int_equal(line.cpu_us, 0);
	assert_true(line.has_outputs); /* who does not say so may have some */
}

static void without_an_id_only_an_object_is_the_end(void **state)
{
	struct done_line line;

	(void)state;
	done_line_init(&line, "");
	assert_false(put(&line, "{\"begin\":1}\n{\"done\":1}\n{\"done\":null}\n\n[]\n"));
	assert_false(put(&line, " x {\"done\":{}}\n"));
	assert_true(put(&line, "{\"result\":1}\n{\"done\":{\"memory\":7,\"outputs\":false}}\n"));
	assert_int_equal(line.memory_bytes, 7);
	assert_false(line.has_outputs);
}

static void a_line_that_is_too_long_is_passed_over_with_its_end(void **state)
{
	struct done_line line;
	char text[4 * DONE_LINE_MAX];

	(void)state;
	memset(text, 'x', sizeof(text));
	done_line_init(&line, ID);
	assert_false(done_line_put(&line, (const uint8_t *)text, sizeof(text)));
	assert_false(put(&line, ID " {\"done\":{}}\n"));
	assert_true(put(&line, ID " {\"done\":{}}\n"));
}

static void who_gave_the_id_may_be_gone(void **state)
{
	struct done_line line;
	char id[] = ID;

	(void)state;
	done_line_init(&line, id);
	memset(id, 'x', strlen(id));
	assert_true(put(&line, ID " {\"done\":{}}\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_is_found_in_whatever_pieces_it_comes),
		cmocka_unit_test(another_line_is_not_it),
		cmocka_unit_test(without_an_id_only_an_object_is_the_end),
		cmocka_unit_test(a_line_that_is_too_long_is_passed_over_with_its_end),
		cmocka_unit_test(who_gave_the_id_may_be_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
