/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_buffer_grows_up_to_its_maximum_and_no_further(void **state)
{
	struct buf buf = BUF_INIT(1000);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_append(&buf, &(uint8_t){(uint8_t)i}, 1), 0);
	assert_false(buf.failed);
	assert_int_equal(buf_append(&buf, "x", 1), -EMSGSIZE);
	assert_true(buf.failed);
	assert_int_equal(buf.len, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf.data[i], i & 0xff);
	buf_fini(&buf);
	assert_int_equal(buf.max, 1000);
	assert_false(buf.failed);
}

static void a_failed_append_changes_nothing(void **state)
{
	struct buf buf = BUF_INIT(10);

	(void)state;
	assert_int_equal(buf_append_str(&buf, "hello"), 0);
	assert_int_equal(buf_append_str(&buf, "world!"), -EMSGSIZE);
	assert_int_equal(buf_printf(&buf, "%s", "world!"), -EMSGSIZE);
	assert_int_equal(buf_append(&buf, "x", SIZE_MAX), -EMSGSIZE);
	assert_int_equal(buf_reserve(&buf, SIZE_MAX), -EMSGSIZE);
	assert_int_equal(buf.len, 5);
	assert_memory_equal(buf.data, "hello", 5);
	assert_int_equal(buf_append_str(&buf, "world"), 0); /* what fits still fits */
	buf_fini(&buf);
}

static void what_is_consumed_goes_from_the_front(void **state)
{
	struct buf buf = BUF_INIT(100);

	(void)state;
	buf_append_str(&buf, "abcdef");
	buf_consume(&buf, 2);
	assert_memory_equal(buf.data, "cdef", 4);
	buf_consume(&buf, 0);
	assert_int_equal(buf.len, 4);
	buf_consume(&buf, 4);
	assert_int_equal(buf.len, 0);
	buf_append_str(&buf, "x");
	assert_memory_equal(buf.data, "x", 1);
	buf_fini(&buf);
	buf_consume(&buf, 0); /* of an empty one too */
}

static void a_buffer_becomes_a_string(void **state)
{
	struct buf buf = BUF_INIT(100);
	char *text;

	(void)state;
	text = buf_take_str(&buf);
	assert_string_equal(text, "");
	free(text);
	buf_printf(&buf, "%d-%s", 5, "x");
	text = buf_take_str(&buf);
	assert_string_equal(text, "5-x");
	assert_int_equal(buf.len, 0);
	assert_null(buf.data);
	free(text);
}

static void empty_things_can_be_appended(void **state)
{
	struct buf buf = BUF_INIT(1);

	(void)state;
	assert_int_equal(buf_append(&buf, NULL, 0), 0);
	assert_int_equal(buf_append_str(&buf, ""), 0);
	assert_int_equal(buf_append_str(&buf, "x"), 0);
	assert_int_equal(buf_append(&buf, NULL, 0), 0);
	assert_false(buf.failed);
	buf_fini(&buf);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_grows_up_to_its_maximum_and_no_further),
		cmocka_unit_test(a_failed_append_changes_nothing),
		cmocka_unit_test(what_is_consumed_goes_from_the_front),
		cmocka_unit_test(a_buffer_becomes_a_string),
		cmocka_unit_test(empty_things_can_be_appended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
