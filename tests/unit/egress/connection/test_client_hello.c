/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/client_hello.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint8_t *put(uint8_t *at, size_t number, size_t bytes)
{
	while (bytes-- > 0)
		*at++ = (uint8_t)(number >> 8 * bytes);
	return at;
}

/* A message with one extension before the name, if there is one. */
static size_t write_hello(uint8_t *out, const char *name, size_t name_len)
{
	size_t names_len = name ? 4 + 2 + 3 + name_len : 0, extensions_len = 4 + 2 + names_len;
	size_t hello_len = 2 + 32 + 1 + 2 + 2 + 1 + 1 + 2 + extensions_len;
	uint8_t *at = out;

	at = put(at, 22, 1);
	at = put(at, 0x0301, 2);
	at = put(at, hello_len + 4, 2);
	at = put(at, 1, 1);
	at = put(at, hello_len, 3);
	at = put(at, 0x0303, 2);
	memset(at, 7, 32);
	at += 32;
	at = put(at, 0, 1);
	at = put(at, 2, 2);
	at = put(at, 0x1301, 2);
	at = put(at, 0x0100, 2);
	at = put(at, extensions_len, 2);
	at = put(at, 0x0017, 2);
	at = put(at, 2, 2);
	at = put(at, 0, 2);
	if (name) {
		at = put(at, 0, 2);
		at = put(at, name_len + 5, 2);
		at = put(at, name_len + 3, 2);
		at = put(at, 0, 1);
		at = put(at, name_len, 2);
		memcpy(at, name, name_len);
		at += name_len;
	}
	return (size_t)(at - out);
}

static void the_name_is_found_once_all_is_there(void **state)
{
	char name[EGRESS_NAME_MAX] = "";
	uint8_t hello[512];
	size_t len = write_hello(hello, "Ok.Test", 7);

	(void)state;
	for (size_t part = 0; part < len; part++)
		assert_int_equal(client_hello_read(hello, part, name), -EAGAIN);
	assert_int_equal(client_hello_read(hello, len, name), 1);
	assert_string_equal(name, "ok.test");
}

static void who_names_nobody_names_nobody(void **state)
{
	char name[EGRESS_NAME_MAX];
	uint8_t hello[512];
	size_t len = write_hello(hello, NULL, 0);

	(void)state;
	assert_int_equal(client_hello_read(hello, len, name), 0);
	assert_int_equal(client_hello_read((const uint8_t *)"GET / HTTP/1.1", 14, name), 0);
	assert_int_equal(client_hello_read((const uint8_t *)"S", 1, name), 0);
}

static void a_name_that_is_hidden_is_refused(void **state)
{
	char name[EGRESS_NAME_MAX];
	uint8_t hello[512], changed[512];
	size_t len = write_hello(hello, "evil\0.ok.test", 13);

	(void)state;
	assert_int_equal(client_hello_read(hello, len, name), -EBADMSG);
	len = write_hello(hello, "1.2.3.4", 7);
	assert_int_equal(client_hello_read(hello, len, name), -EBADMSG);
	len = write_hello(hello, "evil.test", 9);
	/* Spread over two records. */
	memcpy(changed, hello, len);
	put(changed + 3, 20, 2);
	assert_int_equal(client_hello_read(changed, len, name), -EBADMSG);
	/* Lengths that lie: of the extensions, of the list, of the name. */
	for (size_t at = len - 9 - 9; at < len - 9; at++) {
		memcpy(changed, hello, len);
		changed[at] ^= 0x40;
		assert_true(client_hello_read(changed, len, name) <= 0);
	}
	/* Another message, an empty record, one that is too large. */
	memcpy(changed, hello, len);
	changed[5] = 2;
	assert_int_equal(client_hello_read(changed, len, name), -EBADMSG);
	put(changed + 3, 0, 2);
	assert_int_equal(client_hello_read(changed, len, name), -EBADMSG);
	put(changed + 3, 16385, 2);
	assert_int_equal(client_hello_read(changed, len, name), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_is_found_once_all_is_there),
		cmocka_unit_test(who_names_nobody_names_nobody),
		cmocka_unit_test(a_name_that_is_hidden_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
