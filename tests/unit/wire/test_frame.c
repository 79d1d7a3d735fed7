/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_frame_comes_back_as_it_was_put(void **state)
{
	struct buf out = BUF_INIT(1000);
	struct frame frame;

	(void)state;
	frame_put(&out, 0xfedc, 0xfedcba98, "payload", 7);
	frame_put(&out, 1, 2, NULL, 0);
	assert_int_equal(out.len, 2 * FRAME_HEADER_LEN + 7);
	assert_int_equal(frame_next(out.data, out.len, 7, &frame), FRAME_HEADER_LEN + 7);
	assert_int_equal(frame.kind, 0xfedc);
	assert_int_equal(frame.id, 0xfedcba98);
	assert_int_equal(frame.len, 7);
	assert_memory_equal(frame.payload, "payload", 7);
	assert_int_equal(frame_next(out.data + FRAME_HEADER_LEN + 7, FRAME_HEADER_LEN, 7, &frame),
		FRAME_HEADER_LEN);
	assert_int_equal(frame.len, 0);
	buf_fini(&out);
}

static void a_header_and_a_payload_make_a_frame(void **state)
{
	struct buf whole = BUF_INIT(100), parts = BUF_INIT(100);

	(void)state;
	frame_put(&whole, 5, 6, "abc", 3);
	frame_put_header(&parts, 5, 6, 3);
	buf_append(&parts, "abc", 3);
	assert_int_equal(whole.len, parts.len);
	assert_memory_equal(whole.data, parts.data, whole.len);
	buf_fini(&whole);
	buf_fini(&parts);
}

static void a_part_of_a_frame_waits_for_the_rest(void **state)
{
	struct buf out = BUF_INIT(100);
	struct frame frame = {.kind = 77};

	(void)state;
	frame_put(&out, 5, 6, "payload", 7);
	for (size_t len = 0; len < out.len; len++) {
		uint8_t *part = mem_new(len ? len : 1);

		memcpy(part, out.data, len);
		assert_int_equal(frame_next(part, len, 100, &frame), 0);
		free(part);
	}
	assert_int_equal(frame.kind, 77);
	buf_fini(&out);
}

static void what_can_never_be_a_frame_is_refused_at_its_header(void **state)
{
	struct buf out = BUF_INIT(100);
	struct frame frame;

	(void)state;
	frame_put_header(&out, 5, 6, 101);
	assert_int_equal(frame_next(out.data, out.len, 101, &frame), 0);
	assert_int_equal(frame_next(out.data, out.len, 100, &frame), -EPROTO);
	memset(out.data, 0xff, 4);
	assert_int_equal(frame_next(out.data, out.len, 100, &frame), -EPROTO);
	memset(out.data, 0, 4);
	out.data[6] = 1; /* reserved */
	assert_int_equal(frame_next(out.data, out.len, 100, &frame), -EPROTO);
	buf_fini(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_comes_back_as_it_was_put),
		cmocka_unit_test(a_header_and_a_payload_make_a_frame),
		cmocka_unit_test(a_part_of_a_frame_waits_for_the_rest),
		cmocka_unit_test(what_can_never_be_a_frame_is_refused_at_its_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
