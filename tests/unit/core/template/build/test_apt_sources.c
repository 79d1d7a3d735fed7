/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/apt_sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The lines that come of a text, each with a newline. */
static void expect(const char *text, bool is_deb822, const char *lines)
{
	json_t *found = json_array();
	const json_t *line;
	char all[4096] = "";
	size_t i;

	apt_sources_read(text, is_deb822, "bookworm", found);
	json_array_foreach(found, i, line)
	{
		strcat(all, json_string_value(line));
		strcat(all, "\n");
	}
	assert_string_equal(all, lines);
	json_decref(found);
}

static void lines_of_the_suite_its_updates_and_security_are_taken(void **state)
{
	(void)state;
	expect("# a comment\n"
	       "deb http://deb.example/debian bookworm main contrib # and why\n"
	       "deb [arch=amd64 signed-by=/x.gpg]  http://deb.example/debian\tbookworm-updates "
	       "main\n"
	       "deb-src http://deb.example/debian bookworm main\n"
	       "deb http://deb.example/security bookworm-security main\n"
	       "deb http://deb.example/debian bookworm-backports main\n"
	       "deb http://deb.example/debian trixie main\n",
		false,
		"deb http://deb.example/debian bookworm main contrib \n"
		"deb http://deb.example/debian bookworm-updates main\n"
		"deb http://deb.example/security bookworm-security main\n");
}

static void paragraphs_are_read_with_all_their_addresses_and_suites(void **state)
{
	(void)state;
	expect("Types: deb deb-src\n"
	       "# between\n"
	       "URIs: http://a.example/debian https://b.example/debian\n"
	       "Suites: bookworm bookworm-updates trixie\n"
	       "Components: main \n"
	       "Signed-By:\n"
	       " -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
	       " .\n"
	       "\n"
	       "Types: deb\nURIs: http://off.example\nSuites: bookworm\nComponents: main\nEnabled: "
	       "no\n"
	       "\n"
	       "Types: deb-src\nURIs: http://src.example\nSuites: bookworm\nComponents: main\n"
	       "\n"
	       "types: deb\nuris: http://c.example\nsuites: bookworm-security\ncomponents: main",
		true,
		"deb http://a.example/debian bookworm main\n"
		"deb http://a.example/debian bookworm-updates main\n"
		"deb https://b.example/debian bookworm main\n"
		"deb https://b.example/debian bookworm-updates main\n"
		"deb http://c.example bookworm-security main\n");
}

static void what_is_no_plain_address_is_left_out(void **state)
{
	(void)state;
	expect("deb http://user:secret@deb.example/debian bookworm main\n"
	       "deb file:///srv/debian bookworm main\n"
	       "deb cdrom:[Debian] bookworm main\n"
	       "deb [trusted=yes http://deb.example bookworm main\n"
	       "deb http://deb.example/$(ARCH) bookworm main\n"
	       "deb http://deb.example bookworm\n"
	       "deb http://deb.example\n"
	       "deb\n",
		false, "");
	expect("", true, "");
	expect("Types: deb\nURIs: http://user@c.example\nSuites: bookworm\nComponents: main", true,
		"");
}

static void the_number_of_lines_is_bounded(void **state)
{
	json_t *found = json_array();

	(void)state;
	for (int i = 0; i < 100; i++)
		apt_sources_read("deb http://a.example bookworm main\n", false, "bookworm", found);
	assert_int_equal(json_array_size(found), 32);
	json_decref(found);
}

static void a_host_without_sources_has_those_of_debian(void **state)
{
	json_t *found = apt_sources_of_host("/nowhere", "bookworm");

	(void)state;
	assert_int_equal(json_array_size(found), 3);
	assert_string_equal(json_string_value(json_array_get(found, 2)),
		"deb http://deb.debian.org/debian-security bookworm-security main");
	json_decref(found);
}

static void a_suite_is_a_plain_name(void **state)
{
	(void)state;
	assert_true(apt_sources_is_suite("bookworm"));
	assert_true(apt_sources_is_suite("bookworm-backports"));
	assert_false(apt_sources_is_suite(""));
	assert_false(apt_sources_is_suite("-o"));
	assert_false(apt_sources_is_suite("book worm"));
	assert_false(apt_sources_is_suite("../x"));
	assert_false(apt_sources_is_suite("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_suite_its_updates_and_security_are_taken),
		cmocka_unit_test(paragraphs_are_read_with_all_their_addresses_and_suites),
		cmocka_unit_test(what_is_no_plain_address_is_left_out),
		cmocka_unit_test(the_number_of_lines_is_bounded),
		cmocka_unit_test(a_host_without_sources_has_those_of_debian),
		cmocka_unit_test(a_suite_is_a_plain_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
