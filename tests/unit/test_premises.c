/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/premises.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(const struct premises *premises, const char *text)
{
	char content[256] = "";

	assert_int_equal(
		pread(premises->address_fd, content, sizeof(content) - 1, 0), strlen(text));
	assert_string_equal(content, text);
}

/* Whoever reads an empty file takes it that nobody serves. This one cannot become shorter, and so not empty. */
static void an_address_is_replaced_without_a_moment_that_has_none(void **state)
{
	struct premises premises = {.address_fd = memfd_create("api.addr", MFD_ALLOW_SEALING)};

	(void)state;
	premises_write_address(&premises, "https://127.0.0.1:9090 first");
	assert_int_equal(fcntl(premises.address_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	premises_write_address(&premises, "https://127.0.0.1:9090 other");
	expect(&premises, "https://127.0.0.1:9090 other\n");
	close(premises.address_fd);
}

static void nothing_is_left_of_an_address_that_was_longer(void **state)
{
	struct premises premises = {.address_fd = memfd_create("api.addr", 0)};

	(void)state;
	premises_write_address(&premises, "127.0.0.1:19090");
	premises_write_address(&premises, "127.0.0.1:90");
	expect(&premises, "127.0.0.1:90\n");
	premises_write_address(&premises, "");
	expect(&premises, "");
	close(premises.address_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_replaced_without_a_moment_that_has_none),
		cmocka_unit_test(nothing_is_left_of_an_address_that_was_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
