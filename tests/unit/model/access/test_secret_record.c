/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/secret_record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_url_is_taken_apart(void **state)
{
	struct secret_server server;

	(void)state;
	assert_int_equal(secret_server_read("https://Api.Test/v1/", &server), 0);
	assert_true(server.is_tls);
	assert_string_equal(server.at.name, "api.test");
	assert_int_equal(server.at.port, 443);
	assert_string_equal(server.host, "api.test");
	assert_string_equal(server.path, "/v1");
	assert_int_equal(secret_server_read("http://10.0.0.5:8000", &server), 0);
	assert_false(server.is_tls);
	assert_string_equal(server.at.name, "");
	assert_string_equal(server.host, "10.0.0.5:8000");
	assert_string_equal(server.path, "");
	assert_int_equal(secret_server_read("https://[2001:DB8::1]:8443/x", &server), 0);
	assert_string_equal(server.host, "[2001:db8::1]:8443");
	assert_int_equal(secret_server_read("http://[::1]", &server), 0);
	assert_string_equal(server.host, "[::1]");
	assert_int_equal(secret_server_read("http://api.test:80/", &server), 0);
	assert_string_equal(server.host, "api.test");
}

static void what_is_no_server_is_refused(void **state)
{
	static const char *const bad[] = {"", "api.test", "ftp://api.test", "https://",
		"https:///x", "https://u@api.test", "https://api.test?q", "https://api.test#f",
		"https://api.test:", "https://api.test:0", "https://api.test:65536",
		"https://api.test:+1", "https://api.test:443:1", "https://api..test",
		"https://0x7f.0.0.1", "https://2130706433", "https://api.test/..",
		"https://api.test/./x", "https://api.test/a/%2e%2E/b", "https://api.test\\x",
		"https://api.test/a b", "https://api.test/\r\n", "HTTPS://api.test", "http://::1/",
		"http://[::1", "http://[1.2.3.4]", "http://[api.test]", "http://[::1]x"};
	char url[SECRET_URL_MAX + 1] = "http://api.test/";
	struct secret_server server;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (secret_server_read(bad[i], &server) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	}
	memset(url + strlen(url), 'x', SECRET_URL_MAX - strlen(url));
	assert_int_equal(secret_server_read(url, &server), -EINVAL);
}

static void names_are_labels_of_host_names(void **state)
{
	char longest[SECRET_NAME_MAX + 1] = "";

	(void)state;
	memset(longest, 'a', SECRET_NAME_MAX - 1);
	assert_true(secret_name_is_valid("model"));
	assert_true(secret_name_is_valid("0-a"));
	assert_true(secret_name_is_valid(longest));
	longest[SECRET_NAME_MAX - 1] = 'a';
	assert_false(secret_name_is_valid(longest));
	assert_false(secret_name_is_valid(""));
	assert_false(secret_name_is_valid("-a"));
	assert_false(secret_name_is_valid("a-"));
	assert_false(secret_name_is_valid("A"));
	assert_false(secret_name_is_valid("a.b"));
}

static void no_value_ends_a_line_or_begins_another(void **state)
{
	(void)state;
	assert_true(secret_value_is_valid("a b~!", 5));
	assert_false(secret_value_is_valid("", 0));
	assert_false(secret_value_is_valid("a\r\nb", 4));
	assert_false(secret_value_is_valid("a\nb", 3));
	assert_false(secret_value_is_valid("a\0b", 3));
	assert_false(secret_value_is_valid("a\tb", 3));
	assert_false(secret_value_is_valid("a\x7f", 2));
	assert_false(secret_value_is_valid("\xc3\xa9", 2));
	assert_false(secret_value_is_valid(" a", 2));
	assert_false(secret_value_is_valid("a ", 2));
	assert_true(secret_prefix_is_valid("Bearer "));
	assert_true(secret_prefix_is_valid(""));
	assert_false(secret_prefix_is_valid("a\nb"));
}

static void a_field_that_frames_the_message_is_none_for_a_secret(void **state)
{
	static const char *const bad[] = {"", "Host", "HOST", "content-length", "Transfer-Encoding",
		"connection", "Upgrade", "a b", "a:", "a\r", "TE"};

	(void)state;
	assert_true(secret_header_is_valid("Authorization"));
	assert_true(secret_header_is_valid("x-api-key"));
	for (size_t i = 0; i < array_len(bad); i++) {
		if (secret_header_is_valid(bad[i]))
			fail_msg("accepted: %s", bad[i]);
	}
}

static void steps_are_seen_in_every_spelling(void **state)
{
	static const char *const steps[] = {"/..", "/../a", "/a/..", "/a/./b", "/%2e%2e/a",
		"/%2E./a", "/a%2f..%2fb", "/a%5C../b", "/a\\..\\b", "/..;/a", "/a/.?x", "/..",
		"/..#", "/a/.#b", "/a#/../b"};
	static const char *const fine[] = {"/", "", "/...", "/a..b", "/..a", "/.well-known",
		"/a?../x", "/v1.0/x", "/%2e%2e%2e", "?/../"};

	(void)state;
	for (size_t i = 0; i < array_len(steps); i++) {
		if (!secret_path_has_steps(steps[i], strlen(steps[i])))
			fail_msg("not seen: %s", steps[i]);
	}
	for (size_t i = 0; i < array_len(fine); i++) {
		if (secret_path_has_steps(fine[i], strlen(fine[i])))
			fail_msg("seen: %s", fine[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_is_taken_apart),
		cmocka_unit_test(what_is_no_server_is_refused),
		cmocka_unit_test(names_are_labels_of_host_names),
		cmocka_unit_test(no_value_ends_a_line_or_begins_another),
		cmocka_unit_test(a_field_that_frames_the_message_is_none_for_a_secret),
		cmocka_unit_test(steps_are_seen_in_every_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
