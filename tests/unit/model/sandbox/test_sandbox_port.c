/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/sandbox_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

static void a_port_is_a_number_or_says_more(void **state)
{
	static const char *const good[] = {"[]", "[1, 65535]", "[{\"port\": 3000}]",
		"[80, {\"port\": 3000, \"public\": true, \"prefix\": \"keep\"}]",
		"[{\"port\": 3000, \"public\": false}, {\"port\": 1, \"prefix\": \"strip\"}]"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		json_auto_t *ports = parse(good[i]);

		if (sandbox_port_check(ports))
			fail_msg("%s: %s", good[i], sandbox_port_check(ports));
	}
}

static void what_is_no_port_is_refused(void **state)
{
	static const char *const bad[] = {"[0]", "[65536]", "[1.0]", "[\"80\"]", "[null]", "[[80]]",
		"[{}]", "[{\"port\": 0}]", "[{\"port\": \"80\"}]", "[{\"public\": true}]",
		"[{\"port\": 80, \"public\": 1}]", "[{\"port\": 80, \"public\": null}]",
		"[{\"port\": 80, \"prefix\": \"cut\"}]", "[{\"port\": 80, \"prefix\": true}]",
		"[{\"port\": 80, \"else\": 1}]", "[80, 443, 80]", "[80, {\"port\": 80}]"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_auto_t *ports = parse(bad[i]);

		if (!sandbox_port_check(ports))
			fail_msg("taken: %s", bad[i]);
	}
}

static void what_says_nothing_more_is_a_number_again(void **state)
{
	const struct port_spec ports[] = {{.number = 1}, {.number = 3, .is_public = CHOICE_NO},
		{.number = 4, .keeps_prefix = true},
		{.number = 5, .is_public = CHOICE_YES, .keeps_prefix = true}};
	json_auto_t *expected = parse("[1, {\"port\": 3, \"public\": false},"
				      "{\"port\": 4, \"prefix\": \"keep\"},"
				      "{\"port\": 5, \"public\": true, \"prefix\": \"keep\"}]");
	json_auto_t *kept = sandbox_spec_ports_to_json(ports, array_len(ports));

	(void)state;
	assert_true(json_equal(kept, expected));
}

static void each_port_follows_the_sandbox_unless_it_says_otherwise(void **state)
{
	struct sandbox_record record = {.is_private = true};
	struct sandbox_port port;

	(void)state;
	record.ports = parse("[1, {\"port\": 2, \"public\": true, \"prefix\": \"keep\"},"
			     "{\"port\": 3, \"public\": false}]");
	assert_true(sandbox_port_find(&record, 0, &port));
	assert_int_equal(port.number, 1);
	for (int i = 0; i < 2; i++) {
		record.is_private = i == 0;
		assert_true(sandbox_port_find(&record, 1, &port));
		assert_int_equal(port.is_public, !record.is_private);
		assert_false(port.keeps_prefix);
		assert_true(sandbox_port_find(&record, 2, &port));
		assert_true(port.is_public && port.keeps_prefix);
		assert_true(sandbox_port_find(&record, 3, &port));
		assert_false(port.is_public);
	}
	assert_false(sandbox_port_find(&record, 4, &port));
	json_decref(record.ports);
}

static void one_port_is_changed_and_the_others_stay(void **state)
{
	json_auto_t *ports = parse("[1, {\"port\": 2, \"public\": true}]");
	json_auto_t *opens = parse("{\"public\": true}");
	json_auto_t *keeps = parse("{\"prefix\": \"keep\"}");
	json_auto_t *strips = parse("{\"prefix\": \"strip\"}");
	json_auto_t *changed =
		parse("[{\"port\": 1, \"public\": true}, {\"port\": 2, \"public\": true,"
		      "\"prefix\": \"keep\"}]");
	json_auto_t *back =
		parse("[{\"port\": 1, \"public\": true}, {\"port\": 2, \"public\": true}]");

	(void)state;
	assert_true(sandbox_port_change(ports, 1, opens));
	assert_true(sandbox_port_change(ports, 2, keeps));
	assert_true(json_equal(ports, changed));
	assert_true(sandbox_port_change(ports, 2, strips));
	assert_true(json_equal(ports, back));
}

static void a_port_that_was_not_there_is_one_of_them_then_up_to_a_bound(void **state)
{
	json_auto_t *ports = json_array();
	json_auto_t *nothing = json_object();
	json_auto_t *opens = parse("{\"public\": true}");
	json_auto_t *both = parse("[3, {\"port\": 4, \"public\": true}]");

	(void)state;
	assert_true(sandbox_port_change(ports, 3, nothing));
	assert_true(sandbox_port_change(ports, 4, opens));
	assert_true(json_equal(ports, both));
	for (uint16_t i = 2; i < SANDBOX_PORTS_MAX; i++)
		assert_true(sandbox_port_change(ports, 100 + i, nothing));
	assert_false(sandbox_port_change(ports, 99, nothing));
	assert_int_equal(json_array_size(ports), SANDBOX_PORTS_MAX);
	assert_true(sandbox_port_change(ports, 3, opens));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_a_number_or_says_more),
		cmocka_unit_test(what_is_no_port_is_refused),
		cmocka_unit_test(what_says_nothing_more_is_a_number_again),
		cmocka_unit_test(each_port_follows_the_sandbox_unless_it_says_otherwise),
		cmocka_unit_test(one_port_is_changed_and_the_others_stay),
		cmocka_unit_test(a_port_that_was_not_there_is_one_of_them_then_up_to_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
