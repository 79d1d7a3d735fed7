/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "model/template/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_template_says_its_profile(void **state)
{
	(void)state;
	assert_int_equal(template_find("host")->profile, TEMPLATE_PROFILE_DEFAULT);
	assert_int_equal(template_find("browser")->profile, TEMPLATE_PROFILE_BROWSER);
	assert_null(template_find("unconfined"));
	assert_null(template_find(""));
	assert_null(template_find("hos"));
	assert_null(template_find("host,browser"));
}

static void a_profile_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(template_profile_name(TEMPLATE_PROFILE_DEFAULT), "default");
	assert_string_equal(template_profile_name(TEMPLATE_PROFILE_BROWSER), "browser");
}

static void only_what_is_listed_is_offered(void **state)
{
	(void)state;
	assert_true(template_is_offered("host", "host"));
	assert_true(template_is_offered("host,browser", "browser"));
	assert_false(template_is_offered("host", "browser"));
	assert_false(template_is_offered("browsers", "browser"));
	assert_false(template_is_offered("", "host"));
	assert_false(template_is_offered("host", ""));
}

static void a_list_names_templates(void **state)
{
	static const char *const bad[] = {
		"", "hosts", "host;browser", "host,,browser", ",", "unconfined"};
	struct err err;

	(void)state;
	assert_int_equal(template_check_list("host", &err), 0);
	assert_int_equal(template_check_list("browser,host", &err), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		if (template_check_list(bad[i], &err) >= 0)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_template_says_its_profile),
		cmocka_unit_test(a_profile_has_a_name),
		cmocka_unit_test(only_what_is_listed_is_offered),
		cmocka_unit_test(a_list_names_templates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
