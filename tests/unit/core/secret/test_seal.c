/* SPDX-License-Identifier: Apache-2.0 */
#include "core/secret/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t key[SEAL_KEY_LEN] = "a key that is only for this test";

static struct buf label_of(const char *text)
{
	struct buf label = BUF_INIT(64);

	buf_append_str(&label, text);
	return label;
}

static void what_was_sealed_opens_with_the_same_key_and_label(void **state)
{
	struct buf label = label_of("for this"), sealed = BUF_INIT(256);
	char *text = NULL;

	(void)state;
	assert_int_equal(seal_close(key, &label, "secret", 6, &sealed), 0);
	assert_int_equal(sealed.len, 6 + SEAL_OVERHEAD);
	assert_null(memmem(sealed.data, sealed.len, "secret", 6));
	assert_int_equal(seal_open(key, &label, sealed.data, sealed.len, &text), 0);
	assert_string_equal(text, "secret");
	free(text);
	buf_fini(&sealed);
	buf_fini(&label);
}

static void the_same_text_is_never_sealed_to_the_same_bytes(void **state)
{
	struct buf label = label_of("x"), one = BUF_INIT(256), other = BUF_INIT(256);

	(void)state;
	assert_int_equal(seal_close(key, &label, "secret", 6, &one), 0);
	assert_int_equal(seal_close(key, &label, "secret", 6, &other), 0);
	assert_memory_not_equal(one.data, other.data, one.len);
	buf_fini(&one);
	buf_fini(&other);
	buf_fini(&label);
}

static void another_key_label_or_byte_does_not_open_it(void **state)
{
	static const uint8_t wrong[SEAL_KEY_LEN] = "another key";
	struct buf label = label_of("for this"), other = label_of("for that"),
		   sealed = BUF_INIT(256);
	char *text = NULL;

	(void)state;
	assert_int_equal(seal_close(key, &label, "secret", 6, &sealed), 0);
	assert_int_equal(seal_open(wrong, &label, sealed.data, sealed.len, &text), -EBADMSG);
	assert_int_equal(seal_open(key, &other, sealed.data, sealed.len, &text), -EBADMSG);
	for (size_t i = 0; i < sealed.len; i++) {
		sealed.data[i] ^= 1;
		assert_int_equal(seal_open(key, &label, sealed.data, sealed.len, &text), -EBADMSG);
		sealed.data[i] ^= 1;
	}
	for (size_t len = 0; len < sealed.len; len++)
		assert_int_equal(seal_open(key, &label, sealed.data, len, &text), -EBADMSG);
	assert_null(text);
	buf_fini(&sealed);
	buf_fini(&label);
	buf_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_sealed_opens_with_the_same_key_and_label),
		cmocka_unit_test(the_same_text_is_never_sealed_to_the_same_bytes),
		cmocka_unit_test(another_key_label_or_byte_does_not_open_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
