/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/secret.h"

#include "auth/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void secrets_have_the_length_and_letters_of_their_kind(void **state)
{
	static const char url[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char one[SECRET_TEXT_MAX], other[SECRET_TEXT_MAX];

	(void)state;
	for (int i = 0; i < 100; i++) {
		secret_make("slt_x_", one);
		assert_int_equal(strlen(one), 6 + 64);
		assert_int_equal(strspn(one + 6, "0123456789abcdef"), 64);
		secret_make_short(SECRET_LINK_PREFIX, one);
		assert_int_equal(strlen(one), 4 + 43);
		assert_int_equal(strspn(one + 4, url), 43);
		secret_make_short(SECRET_LINK_PREFIX, other);
		assert_string_not_equal(one, other);
	}
}

static void what_is_encoded_is_decoded(void **state)
{
	uint8_t data[64], back[128];
	char text[sizeof(data) * 2];

	(void)state;
	for (size_t len = 0; len <= sizeof(data); len++) {
		for (size_t i = 0; i < len; i++)
			data[i] = (uint8_t)(i * 37 + len * 101);
		base64url_encode(data, len, text);
		assert_int_equal(base64url_decode(text, strlen(text), back), len);
		assert_memory_equal(data, back, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_have_the_length_and_letters_of_their_kind),
		cmocka_unit_test(what_is_encoded_is_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
