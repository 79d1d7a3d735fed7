/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exact_digits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_written(const char *text, const char *expected)
{
	json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);
	char *written = json_dumps(document,
		JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(exact_digits(document)));

	assert_string_equal(written, expected);
	free(written);
	json_decref(document);
}

static void no_more_digits_are_written_than_a_number_has(void **state)
{
	(void)state;
	assert_written("0.1", "0.1");
	assert_written("[-19.99,{\"a\":[2.5]},7,\"0.30000000000000004\"]",
		"[-19.99,{\"a\":[2.5]},7,\"0.30000000000000004\"]");
	assert_int_equal(exact_digits(NULL), EXACT_DIGITS_LEAST);
}

static void each_number_is_read_back_as_it_was(void **state)
{
	(void)state;
	assert_written("0.30000000000000004", "0.30000000000000004");
	assert_written(
		"{\"a\":[{\"b\":0.3333333333333333}]}", "{\"a\":[{\"b\":0.3333333333333333}]}");
	assert_written("[5e-324]", "[4.94065645841247e-324]");
	assert_written("[1.7976931348623157e308]", "[1.7976931348623157e308]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_digits_are_written_than_a_number_has),
		cmocka_unit_test(each_number_is_read_back_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
