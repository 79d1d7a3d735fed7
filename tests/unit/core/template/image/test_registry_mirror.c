/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/registry_mirror.h"
#include "core/template/image/short_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SETTING                                                                                    \
	"near.example:5000,far.example=one.example/cache/hub,far.example=two.example,localhost"

static void mirrors_are_those_of_their_registry_in_order(void **state)
{
	struct registry_mirror mirror;

	(void)state;
	assert_int_equal(registry_mirror_check(SETTING, NULL), 0);
	assert_int_equal(registry_mirror_check("", NULL), 0);
	assert_true(registry_mirror_get(SETTING, "main.example", "main.example", 0, &mirror));
	assert_string_equal(mirror.host, "near.example:5000");
	assert_string_equal(mirror.prefix, "");
	assert_true(registry_mirror_get(SETTING, "main.example", "main.example", 1, &mirror));
	assert_string_equal(mirror.host, "localhost");
	assert_false(registry_mirror_get(SETTING, "main.example", "main.example", 2, &mirror));
	assert_true(registry_mirror_get(SETTING, "main.example", "far.example", 0, &mirror));
	assert_string_equal(mirror.host, "one.example");
	assert_string_equal(mirror.prefix, "cache/hub");
	assert_true(registry_mirror_get(SETTING, "main.example", "far.example", 1, &mirror));
	assert_string_equal(mirror.host, "two.example");
	assert_false(registry_mirror_get(SETTING, "main.example", "else.example", 0, &mirror));
	assert_true(registry_mirror_is(SETTING, "one.example"));
	assert_false(registry_mirror_is(SETTING, "far.example"));
}

static void a_setting_of_another_form_is_refused(void **state)
{
	static const char *const wrong[] = {"mirror", "a.example=", "=a.example", "a.example=b",
		"https://a.example", "a.example/UPPER", "a.example,,b.example", "a.example/x/",
		"a b.example", "a.example=b.example=c.example"};

	(void)state;
	for (size_t i = 0; i < array_len(wrong); i++) {
		struct err err = {0};

		if (registry_mirror_check(wrong[i], &err) == 0)
			fail_msg("%s is taken", wrong[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void an_image_of_a_mirror_has_its_prefix_and_the_same_version(void **state)
{
	struct registry_mirror mirror = {.host = "m.example", .prefix = "cache"};
	struct image_reference reference = {
		.registry = "r.example", .repository = "team/app", .tag = "v1"};
	struct image_reference there;

	(void)state;
	assert_int_equal(registry_mirror_translate(&mirror, &reference, &there), 0);
	assert_string_equal(there.registry, "m.example");
	assert_string_equal(there.repository, "cache/team/app");
	assert_string_equal(there.tag, "v1");
	memset(mirror.prefix, 'x', sizeof(mirror.prefix) - 1);
	assert_int_equal(registry_mirror_translate(&mirror, &reference, &there), -EMSGSIZE);
}

static void short_names_stand_for_images(void **state)
{
	static const char setting[] = "py=python:3.12-slim,web=registry.example:5000/team/web";
	static const char *const wrong[] = {
		"py", "py=", "=x", "host=x", "Upper=x", "a=UPPER", "a=x,,b=y", "a=b c"};
	struct short_name found;

	(void)state;
	assert_int_equal(short_name_check(setting, NULL), 0);
	assert_true(short_name_find(setting, "web", &found));
	assert_string_equal(found.image, "registry.example:5000/team/web");
	assert_false(short_name_find(setting, "we", &found));
	assert_true(short_name_get(setting, 0, &found));
	assert_string_equal(found.name, "py");
	assert_false(short_name_get(setting, 2, &found));
	for (size_t i = 0; i < array_len(wrong); i++) {
		struct err err = {0};

		if (short_name_check(wrong[i], &err) == 0)
			fail_msg("%s is taken", wrong[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mirrors_are_those_of_their_registry_in_order),
		cmocka_unit_test(a_setting_of_another_form_is_refused),
		cmocka_unit_test(an_image_of_a_mirror_has_its_prefix_and_the_same_version),
		cmocka_unit_test(short_names_stand_for_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
