/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEX    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST DIGEST_PREFIX HEX

static const struct image_defaults defaults = {.registry = "hub.example", .prefix = "library"};

static const struct {
	const char *text, *whole;
} good[] = {
	{"python", "hub.example/library/python:latest"},
	{"python:3.12-slim", "hub.example/library/python:3.12-slim"},
	{"team/app", "hub.example/team/app:latest"},
	{"app:5000", "hub.example/library/app:5000"},
	{"registry.example/app", "registry.example/app:latest"},
	{"registry:5000/app", "registry:5000/app:latest"},
	{"registry:5000/a/b/c:v1", "registry:5000/a/b/c:v1"},
	{"localhost/app", "localhost/app:latest"},
	{"127.0.0.1:5000/a__b.c-d--e", "127.0.0.1:5000/a__b.c-d--e:latest"},
	{"app@" DIGEST, "hub.example/library/app@" DIGEST},
	{"r.example:1/app:v2@" DIGEST, "r.example:1/app:v2@" DIGEST},
	{"Registry.Example/app:V2", "Registry.Example/app:V2"},
};

static const char *const bad[] = {"", ":", "@", "/", "a/", "/a", "a//b", "App", "-app", "app-",
	"a..b", "a___b", "app:", "app:-x", "app:a b", "app@sha256:123", "app@md5:" HEX,
	"--privileged", "a;b", "a\nb", "r.example:/app", "r.example:123456/app",
	"r.example:80a/app", ".r/app", "r.-/app", "app:v1:v2", "../app", "a/../b",
	"http://r.example/app", "user@host:5000/app"};

static void names_are_completed(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_len(good); i++) {
		struct image_reference reference;
		char text[IMAGE_REFERENCE_MAX + 1];
		struct err err;

		if (image_reference_parse(good[i].text, &defaults, &reference, &err) < 0)
			fail_msg("%s: %s", good[i].text, err.message);
		image_reference_write(&reference, text);
		assert_string_equal(text, good[i].whole);
	}
}

static void what_is_no_image_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct image_reference reference;
		struct err err;

		if (image_reference_parse(bad[i], &defaults, &reference, &err) >= 0)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_refusal_shows_all_that_was_given(void **state)
{
	struct image_reference reference;
	struct err err;

	(void)state;
	assert_true(image_reference_parse("host:5000/a/b:-c", &defaults, &reference, &err) < 0);
	assert_non_null(strstr(err.message, "b:-c"));
	assert_true(image_reference_parse("::", &defaults, &reference, &err) < 0);
	assert_non_null(strstr(err.message, "\"::\""));
}

static void names_have_a_longest(void **state)
{
	char name[IMAGE_REFERENCE_MAX * 2];
	struct image_reference reference;
	struct err err;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[IMAGE_REPOSITORY_MAX - strlen("library/")] = '\0';
	assert_int_equal(image_reference_parse(name, &defaults, &reference, &err), 0);
	name[strlen(name)] = 'a';
	name[IMAGE_REPOSITORY_MAX - strlen("library/") + 1] = '\0';
	assert_true(image_reference_parse(name, &defaults, &reference, &err) < 0);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_true(image_reference_parse(name, &defaults, &reference, &err) < 0);
}

static void a_digest_goes_before_a_tag(void **state)
{
	struct image_reference reference;
	struct err err;

	(void)state;
	assert_int_equal(image_reference_parse("app:v1@" DIGEST, &defaults, &reference, &err), 0);
	assert_string_equal(image_reference_version(&reference), DIGEST);
	assert_int_equal(image_reference_parse("app", &defaults, &reference, &err), 0);
	assert_string_equal(image_reference_version(&reference), "latest");
}

static void a_plain_name_may_be_a_template(void **state)
{
	(void)state;
	assert_false(image_reference_is_explicit("host"));
	assert_false(image_reference_is_explicit("python3.11"));
	assert_true(image_reference_is_explicit("python:3.12"));
	assert_true(image_reference_is_explicit("team/app"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_completed),
		cmocka_unit_test(what_is_no_image_is_refused),
		cmocka_unit_test(a_refusal_shows_all_that_was_given),
		cmocka_unit_test(names_have_a_longest),
		cmocka_unit_test(a_digest_goes_before_a_tag),
		cmocka_unit_test(a_plain_name_may_be_a_template),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
