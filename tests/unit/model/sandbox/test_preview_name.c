/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/preview_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DOMAIN "preview.localhost"
#define ID     "01k9zzzzzzzzzzzzzzzzzzzzzz"

static int parse(const char *host, char id[ID_LEN + 1], uint16_t *port)
{
	return preview_name_parse(host, DOMAIN, id, port);
}

static void both_forms_are_read_in_any_case_with_and_without_a_port(void **state)
{
	static const char *const hosts[] = {"s-" ID "-3000." DOMAIN, "3000-" ID "." DOMAIN,
		"s-" ID "-3000." DOMAIN ":9091",
		"S-01K9ZZZZZZZZZZZZZZZZZZZZZZ-3000.PREVIEW.LocalHost"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char id[ID_LEN + 1] = "";
		uint16_t port = 0;

		assert_int_equal(parse(hosts[i], id, &port), 0);
		assert_string_equal(id, ID);
		assert_int_equal(port, 3000);
	}
}

static void what_is_written_is_read(void **state)
{
	static const unsigned ports[] = {1, 80, 65535};

	(void)state;
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		char name[128], id[ID_LEN + 1];
		uint16_t port;

		preview_name_format(ID, ports[i], DOMAIN, name, sizeof(name));
		assert_int_equal(parse(name, id, &port), 0);
		assert_string_equal(id, ID);
		assert_int_equal(port, ports[i]);
	}
}

static void names_are_exact(void **state)
{
	static const char *const bad[] = {"s-" ID "-0." DOMAIN, "s-" ID "-03000." DOMAIN,
		"s-" ID "-65536." DOMAIN, "s-" ID "-99999999999999999999." DOMAIN,
		"s-" ID "-." DOMAIN, "s-" ID "." DOMAIN, "s-" ID "-3000-1." DOMAIN,
		"s-" ID "-3000x." DOMAIN, "s-" ID "-+3000." DOMAIN, "x.s-" ID "-3000." DOMAIN,
		"s-" ID "x-3000." DOMAIN, "s--3000." DOMAIN, "-3000." DOMAIN, "-." DOMAIN,
		"3000-" ID "-." DOMAIN, "3000." DOMAIN, "s-01k9zzzzzzzzzzzzzzzzzzzzz-3000." DOMAIN,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa." DOMAIN};
	static const char *const elsewhere[] = {"", ".", DOMAIN, "." DOMAIN, "x" DOMAIN, "evil.com",
		"s-" ID "-3000." DOMAIN ".evil.com", "s-" ID "-3000." DOMAIN ".",
		"s-" ID "-3000." DOMAIN ":", "s-" ID "-3000." DOMAIN ":80x", "[::1]:80", "::1"};
	char id[ID_LEN + 1];
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i], id, &port) != -EINVAL)
			fail_msg("%s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		if (parse(elsewhere[i], id, &port) != -ENOENT)
			fail_msg("%s", elsewhere[i]);
	}
}

static void the_domain_itself_is_known(void **state)
{
	(void)state;
	assert_true(preview_name_is_domain(DOMAIN, DOMAIN));
	assert_true(preview_name_is_domain("PREVIEW.localhost:80", DOMAIN));
	assert_false(preview_name_is_domain("x." DOMAIN, DOMAIN));
	assert_false(preview_name_is_domain(DOMAIN ":", DOMAIN));
	assert_false(preview_name_is_domain("", DOMAIN));
}

static void the_name_of_a_frame_is_one_label(void **state)
{
	static const char *const bad[] = {"f-." DOMAIN, "f-a-b." DOMAIN, "g-ab." DOMAIN,
		"x.f-ab." DOMAIN, "f-a_b." DOMAIN, "s-" ID "-3000." DOMAIN};
	char label[PREVIEW_NAME_LABEL_MAX];

	(void)state;
	assert_int_equal(preview_name_parse_frame("F-aB01." DOMAIN ":9091", DOMAIN, label), 0);
	assert_string_equal(label, "f-ab01");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (preview_name_parse_frame(bad[i], DOMAIN, label) != -EINVAL)
			fail_msg("%s", bad[i]);
	}
	assert_int_equal(preview_name_parse_frame("f-ab.evil.com", DOMAIN, label), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_read_in_any_case_with_and_without_a_port),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(names_are_exact),
		cmocka_unit_test(the_domain_itself_is_known),
		cmocka_unit_test(the_name_of_a_frame_is_one_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
