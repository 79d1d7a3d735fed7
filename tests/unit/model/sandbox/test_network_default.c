/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "model/sandbox/network_default.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_said_for_a_template_weighs_more(void **state)
{
	static const struct network_default settings = {"internet,browser=none", ""};

	(void)state;
	assert_string_equal(network_default_mode(&settings, "host"), "internet");
	assert_string_equal(network_default_mode(&settings, "browser"), "none");
	assert_null(network_default_rules(&settings, "host"));
}

static void rules_of_a_template_take_the_place_of_those_for_all(void **state)
{
	static const struct network_default settings = {
		"allowlist", "a.test:443,browser=*.b.test,10.0.0.0/8,browser=2001:db8::/32"};
	json_t *host = network_default_rules(&settings, "host");
	json_t *browser = network_default_rules(&settings, "browser");

	(void)state;
	assert_int_equal(json_array_size(host), 2);
	assert_string_equal(json_string_value(json_array_get(host, 0)), "a.test:443");
	assert_string_equal(json_string_value(json_array_get(host, 1)), "10.0.0.0/8");
	assert_int_equal(json_array_size(browser), 2);
	assert_string_equal(json_string_value(json_array_get(browser, 0)), "*.b.test");
	json_decref(host);
	json_decref(browser);
}

static void what_cannot_be_read_is_refused(void **state)
{
	static const struct network_default bad[] = {{"", ""}, {"some", ""}, {"browser=none", ""},
		{"none,nobody=internet", ""}, {"none,browser=", ""}, {"none,,internet", ""},
		{"none", "not a name"}, {"none", "a.test,,b.test"}, {"none", "nobody=a.test"},
		{"none", "browser="}};
	static const struct network_default good = {"none,host=allowlist", "host=a.test"};
	struct err err;

	(void)state;
	assert_int_equal(network_default_check(&good, &err), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		if (network_default_check(&bad[i], &err) >= 0)
			fail_msg("\"%s\" and \"%s\" were taken", bad[i].modes, bad[i].rules);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_for_a_template_weighs_more),
		cmocka_unit_test(rules_of_a_template_take_the_place_of_those_for_all),
		cmocka_unit_test(what_cannot_be_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
