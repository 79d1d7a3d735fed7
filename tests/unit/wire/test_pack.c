/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void what_is_packed_comes_out_in_order(void **state)
{
	struct buf out = BUF_INIT(1000);
	struct unpack in;
	const uint8_t *bytes;
	size_t len;
	char *text;

	(void)state;
	pack_u8(&out, 0xfe);
	pack_u16(&out, 0xfedc);
	pack_u32(&out, 0xfedcba98);
	pack_u64(&out, 0xfedcba9876543210);
	pack_str(&out, "text");
	pack_bytes(&out, "\0\1\2", 3);
	pack_str(&out, "");
	assert_false(out.failed);
	in = UNPACK_INIT(out.data, out.len);
	assert_int_equal(unpack_u8(&in), 0xfe);
	assert_int_equal(unpack_u16(&in), 0xfedc);
	assert_int_equal(unpack_u32(&in), 0xfedcba98);
	assert_true(unpack_u64(&in) == 0xfedcba9876543210);
	assert_string_equal(text = unpack_str(&in, 4), "text");
	free(text);
	bytes = unpack_bytes(&in, &len);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "\0\1\2", 3);
	assert_false(unpack_done(&in));
	assert_string_equal(text = unpack_str(&in, 0), "");
	free(text);
	assert_true(unpack_done(&in));
	buf_fini(&out);
}

static void numbers_are_little_endian(void **state)
{
	struct buf out = BUF_INIT(100);

	(void)state;
	pack_u32(&out, 0x01020304);
	pack_u64(&out, 0x1122334455667788);
	assert_memory_equal(out.data, "\x04\x03\x02\x01\x88\x77\x66\x55\x44\x33\x22\x11", 12);
	buf_fini(&out);
}

/* After the first thing that does not fit, everything is zero and empty. */
static void assert_nothing_more(struct unpack *in)
{
	size_t len = 9;
	char *text;

	assert_true(in->bad);
	assert_int_equal(unpack_u8(in), 0);
	assert_int_equal(unpack_u16(in), 0);
	assert_int_equal(unpack_u32(in), 0);
	assert_true(unpack_u64(in) == 0);
	assert_non_null(unpack_bytes(in, &len));
	assert_int_equal(len, 0);
	assert_string_equal(text = unpack_str(in, 100), "");
	free(text);
	assert_false(unpack_done(in));
}

static void reading_never_leaves_the_payload(void **state)
{
	uint8_t *data = mem_new(7); /* of just that size, for the sanitizer */
	struct unpack in;
	size_t len;

	(void)state;
	in = UNPACK_INIT(data, 7);
	(void)unpack_u64(&in);
	assert_nothing_more(&in);
	for (uint32_t claimed = 4; claimed != 0; claimed = claimed < 1u << 31 ? claimed * 2 : 0) {
		memcpy(data, &claimed, 4);
		in = UNPACK_INIT(data, 7);
		(void)unpack_bytes(&in, &len);
		assert_int_equal(len, 0);
		assert_nothing_more(&in);
	}
	memset(data, 0xff, 7);
	in = UNPACK_INIT(data, 7);
	free(unpack_str(&in, SIZE_MAX));
	assert_nothing_more(&in);
	in = UNPACK_INIT(data, 0);
	assert_true(unpack_done(&in));
	(void)unpack_u8(&in);
	assert_nothing_more(&in);
	free(data);
}

static void strings_have_a_maximum_and_no_nul(void **state)
{
	struct buf out = BUF_INIT(100);
	struct unpack in;
	char *text;

	(void)state;
	pack_bytes(&out, "a\0b", 3);
	in = UNPACK_INIT(out.data, out.len);
	text = unpack_str(&in, 100);
	assert_string_equal(text, "");
	assert_nothing_more(&in);
	free(text);
	out.len = 0;
	pack_str(&out, "four");
	in = UNPACK_INIT(out.data, out.len);
	text = unpack_str(&in, 3);
	assert_string_equal(text, "");
	assert_nothing_more(&in);
	free(text);
	buf_fini(&out);
}

static void what_is_left_over_is_noticed(void **state)
{
	struct unpack in = UNPACK_INIT((const uint8_t *)"\1\2", 2);

	(void)state;
	(void)unpack_u8(&in);
	assert_false(unpack_done(&in));
	(void)unpack_u8(&in);
	assert_true(unpack_done(&in));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_comes_out_in_order),
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(reading_never_leaves_the_payload),
		cmocka_unit_test(strings_have_a_maximum_and_no_nul),
		cmocka_unit_test(what_is_left_over_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
