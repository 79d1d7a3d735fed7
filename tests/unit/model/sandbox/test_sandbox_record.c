/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/sandbox_record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void names_of_states_and_reasons_go_both_ways(void **state)
{
	enum sandbox_status status;
	enum end_reason reason;

	(void)state;
	for (int i = 0; i < SANDBOX_STATUS_COUNT; i++) {
		assert_int_equal(sandbox_status_parse(sandbox_status_name(i), &status), 0);
		assert_int_equal(status, i);
	}
	for (int i = 0; i < END_REASON_COUNT; i++) {
		assert_int_equal(end_reason_parse(end_reason_name(i), &reason), 0);
		assert_int_equal(reason, i);
	}
	status = SANDBOX_PAUSED;
	assert_int_equal(sandbox_status_parse("Running", &status), -EINVAL);
	assert_int_equal(sandbox_status_parse("", &status), -EINVAL);
	assert_int_equal(status, SANDBOX_PAUSED);
	assert_int_equal(end_reason_parse("nonsense", &reason), -EINVAL);
}

/* The state machine as a picture: + do it, . nothing to do, - refused, ~ not yet. */
static void each_verb_leads_where_the_picture_says(void **state)
{
	static const char *const picture[SANDBOX_VERB_COUNT] = {
		/*                  creating running paused stopped error */
		[SANDBOX_START] = "~.-++",
		[SANDBOX_STOP] = "+++.+",
		[SANDBOX_PAUSE] = "~+.--",
		[SANDBOX_RESUME] = "~.+--",
		[SANDBOX_RESET] = "~++++",
		[SANDBOX_USE] = "~.-++",
	};

	(void)state;
	for (int verb = 0; verb < SANDBOX_VERB_COUNT; verb++) {
		for (int status = 0; status < SANDBOX_STATUS_COUNT; status++) {
			struct sandbox_record record = {.id = "abc", .status = status};
			char expected = picture[verb][status];
			struct err err = {0};
			int r = sandbox_verb_check(&record, verb, &err);

			assert_int_equal(r, expected == '+'   ? 0
					    : expected == '.' ? 1
					    : expected == '~' ? -EAGAIN
							      : -EEXIST);
			if (expected != '-' && expected != '~')
				continue;
			assert_int_equal(
				err.kind, expected == '~' ? ERR_UNAVAILABLE : ERR_CONFLICT);
			assert_string_equal(
				err.code, expected == '~' ? "sandbox_creating" : "wrong_state");
			assert_non_null(strstr(err.message, "abc"));
			assert_non_null(strstr(err.message,
				expected == '~' ? "created" : sandbox_status_name(status)));
			assert_true(err.remedy[0]);
		}
	}
}

static void a_copy_has_references_of_its_own(void **state)
{
	struct sandbox_record record, copy;

	(void)state;
	sandbox_record_init(&record);
	json_object_set_new(record.env, "A", json_string("1"));
	sandbox_record_copy(&copy, &record);
	sandbox_record_fini(&record);
	assert_null(record.env);
	assert_string_equal(json_string_value(json_object_get(copy.env, "A")), "1");
	assert_int_equal(json_array_size(copy.ports), 0);
	sandbox_record_fini(&copy);
	sandbox_record_fini(&copy); /* twice is fine */
}

static void names_are_letters_digits_and_a_few_signs(void **state)
{
	static const char *const good[] = {"a", "Z", "0", "a.b_c-d", "a..", "0-",
		"123456789012345678901234567890123456789012345678901234567890123"};
	static const char *const bad[] = {"", ".", "-a", "_a", ".a", "a b", "a/b", "a\n",
		"\xc3\xbc", "a\xc3\xbc", "a'b",
		"1234567890123456789012345678901234567890123456789012345678901234"};

	(void)state;
	for (size_t i = 0; i < array_len(good); i++)
		assert_true(model_name_is_valid(good[i]));
	for (size_t i = 0; i < array_len(bad); i++)
		assert_false(model_name_is_valid(bad[i]));
}

static void names_of_sandboxes_are_host_names_and_never_ids(void **state)
{
	static const char *const good[] = {"a", "web", "web-1", "a--",
		"a123456789012345678901234567890123456789", "abcdefghijklmnopqrstuvwxy",
		"abcdefghijklmnopqrstuvwxy-"};
	static const char *const bad[] = {"", "1a", "-a", "Web", "a_b", "a.b", "a b", "a/b", "a\n",
		"\xc3\xa4", "a1234567890123456789012345678901234567890",
		"abcdefghijklmnopqrstuvwxyz"};

	(void)state;
	for (size_t i = 0; i < array_len(good); i++)
		assert_true(sandbox_name_is_valid(good[i]));
	for (size_t i = 0; i < array_len(bad); i++)
		assert_false(sandbox_name_is_valid(bad[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_states_and_reasons_go_both_ways),
		cmocka_unit_test(each_verb_leads_where_the_picture_says),
		cmocka_unit_test(a_copy_has_references_of_its_own),
		cmocka_unit_test(names_are_letters_digits_and_a_few_signs),
		cmocka_unit_test(names_of_sandboxes_are_host_names_and_never_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
