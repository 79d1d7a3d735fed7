/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileged_setup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(const struct privileged_setup *setup, const char *text)
{
	char content[256] = "";

	assert_int_equal(pread(setup->address_fd, content, sizeof(content) - 1, 0), strlen(text));
	assert_string_equal(content, text);
}

/* Whoever reads an empty file takes it that nobody serves. This one cannot become shorter, and so not empty. */
static void an_address_is_replaced_without_a_moment_that_has_none(void **state)
{
	struct privileged_setup setup = {.address_fd = memfd_create("api.addr", MFD_ALLOW_SEALING)};

	(void)state;
	privileged_setup_write_address(&setup, "https://127.0.0.1:9090 first");
	assert_int_equal(fcntl(setup.address_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	privileged_setup_write_address(&setup, "https://127.0.0.1:9090 other");
	expect(&setup, "https://127.0.0.1:9090 other\n");
	close(setup.address_fd);
}

static void nothing_is_left_of_an_address_that_was_longer(void **state)
{
	struct privileged_setup setup = {.address_fd = memfd_create("api.addr", 0)};

	(void)state;
	privileged_setup_write_address(&setup, "127.0.0.1:19090");
	privileged_setup_write_address(&setup, "127.0.0.1:90");
	expect(&setup, "127.0.0.1:90\n");
	privileged_setup_write_address(&setup, "");
	expect(&setup, "");
	close(setup.address_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_replaced_without_a_moment_that_has_none),
		cmocka_unit_test(nothing_is_left_of_an_address_that_was_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
