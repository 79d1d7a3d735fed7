/* SPDX-License-Identifier: Apache-2.0 */
/* The .env of an app: what its owner wrote, in the project or in the copy that runs, survives launches. */
#include "base/mem.h"
#include "launch/stage/env_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK "# Variables of the launch; what is above is kept as it was.\n"

struct heard {
	char text[4096];
};

static void hear(void *arg, const char *line)
{
	struct heard *heard = arg;

	strncat(heard->text, line, sizeof(heard->text) - strlen(heard->text) - 2);
	strcat(heard->text, "\n");
}

/* What one launch leaves; the caller frees it. */
struct result {
	char *text, *made;
	json_t *env;
	struct heard heard;
};

static void result_fini(struct result *result)
{
	free(result->text);
	free(result->made);
	json_decref(result->env);
}

static struct result launch(
	const char *project, const char *copy, const char *made, const char *env)
{
	struct result result = {.env = json_loads(env, 0, NULL)};
	struct env_file file = {
		.project = project, .copy = copy, .made = made, .told = hear, .arg = &result.heard};
	auto_free char *own = env_file_own(&file);

	result.made = env_file_made(&file, own, result.env);
	result.text = env_file_join(&file, own, result.env);
	if (copy[0])
		env_file_tell_changes(&file, result.text);
	return result;
}

static void expect(const struct result *result, const char *text, const char *heard)
{
	assert_string_equal(result->text, text);
	assert_string_equal(result->heard.text, heard);
}

static void a_first_launch_puts_its_variables_below_those_of_the_project(void **state)
{
	struct result first = launch(
		"# mine\nA=1\nPORT=4000", "", NULL, "{\"PORT\":\"3000\",\"HOST\":\"127.0.0.1\"}");

	(void)state;
	expect(&first, "# mine\nA=1\nPORT=4000\n" BLOCK "HOST=127.0.0.1\n",
		"PORT of .env is kept\n");
	assert_string_equal(json_string_value(json_object_get(first.env, "PORT")), "4000");
	result_fini(&first);
}

static void what_was_put_into_the_copy_is_kept_at_each_launch_and_told(void **state)
{
	struct result first = launch("A=1\nB=2\n", "", NULL, "{\"PORT\":\"3000\"}");
	auto_free char *edited =
		mem_printf("A=mine\nB=2\n" BLOCK "PORT=3000\nexport NEW=\"a\nb\"\n");
	struct result second = launch("A=1\nB=2\n", edited, first.made, "{\"PORT\":\"3000\"}");
	struct result third = launch("A=1\nB=3\n", second.text, second.made, "{\"PORT\":\"3000\"}");

	(void)state;
	expect(&second, "A=mine\nB=2\nNEW=\"a\nb\"\n" BLOCK "PORT=3000\n",
		"A of .env is kept as it is in the copy; the project says otherwise\n"
		"NEW of .env is kept as it is in the copy\n");
	expect(&third, "A=mine\nB=3\nNEW=\"a\nb\"\n" BLOCK "PORT=3000\n",
		"A of .env is kept as it is in the copy; the project says otherwise\n"
		"NEW of .env is kept as it is in the copy\n"
		"B of .env is changed\n");
	result_fini(&first);
	result_fini(&second);
	result_fini(&third);
}

static void a_variable_of_the_launch_that_was_edited_is_its_owner_s_from_then_on(void **state)
{
	struct result first = launch("", "", NULL, "{\"PORT\":\"3000\",\"HOST\":\"h\"}");
	/* The port that a launch finds there is the one that it tells the app. */
	struct result second = launch(
		"", BLOCK "PORT=4000\nHOST=h\n", first.made, "{\"PORT\":\"4000\",\"HOST\":\"h\"}");
	struct result third =
		launch("", second.text, second.made, "{\"PORT\":\"3000\",\"HOST\":\"i\"}");

	(void)state;
	expect(&second, "PORT=4000\n" BLOCK "HOST=h\n",
		"PORT of .env is kept as it is in the copy\n");
	expect(&third, "PORT=4000\n" BLOCK "HOST=i\n",
		"PORT of .env is kept as it is in the copy\nPORT of .env is kept\n"
		"HOST of .env is changed\n");
	assert_string_equal(json_string_value(json_object_get(third.env, "PORT")), "4000");
	result_fini(&first);
	result_fini(&second);
	result_fini(&third);
}

static void what_the_project_does_not_say_any_more_goes_and_is_told(void **state)
{
	struct result first = launch("A=1\nB=2\n", "", NULL, "{\"PORT\":\"3000\"}");
	struct result second = launch("B=2\n", first.text, first.made, "{\"PORT\":\"3000\"}");

	(void)state;
	expect(&second, "B=2\n" BLOCK "PORT=3000\n",
		"A of .env is gone, as neither project nor launch has it any more\n");
	result_fini(&first);
	result_fini(&second);
}

static void a_file_that_no_launch_has_written_keeps_all_values(void **state)
{
	struct result first = launch("A=1\n", "A=2\nKEY=x\n", NULL, "{\"PORT\":\"3000\"}");
	/* One that an older daemon wrote: what is below its line is its own. */
	struct result second =
		launch("A=1\n", "A=1\n" BLOCK "PORT=1\nMORE=y\n", NULL, "{\"PORT\":\"3000\"}");

	(void)state;
	expect(&first, "A=2\nKEY=x\n" BLOCK "PORT=3000\n",
		"A of .env is kept as it is in the copy; the project says otherwise\n"
		"KEY of .env is kept as it is in the copy\n");
	expect(&second, "A=1\nMORE=y\n" BLOCK "PORT=3000\n",
		"MORE of .env is kept as it is in the copy\nPORT of .env is changed\n");
	result_fini(&first);
	result_fini(&second);
}

static void a_sandbox_without_a_project_keeps_what_was_added_at_the_end(void **state)
{
	struct result first = launch("A=1\n", "A=1\n", NULL, "{\"PORT\":\"3000\"}");
	auto_free char *edited = mem_printf("%sADDED=1\n", first.text);
	struct result second = launch(edited, edited, first.made, "{\"PORT\":\"3000\"}");

	(void)state;
	expect(&second, "A=1\nADDED=1\n" BLOCK "PORT=3000\n", "");
	result_fini(&first);
	result_fini(&second);
}

static void the_same_launch_again_changes_nothing(void **state)
{
	struct result first =
		launch("A='1'\r\nB=\n#\n\nodd line\n", "", NULL, "{\"PORT\":\"3000\"}");
	struct result second = launch(
		"A='1'\r\nB=\n#\n\nodd line\n", first.text, first.made, "{\"PORT\":\"3000\"}");

	(void)state;
	expect(&second, first.text, "");
	assert_string_equal(first.made, second.made);
	result_fini(&first);
	result_fini(&second);
}

static void of_two_values_the_last_one_counts(void **state)
{
	auto_free char *value = env_file_value("A=1\nA=2\n", "A");
	auto_free char *none = env_file_value("# A=1\nAB=2\n", "A");

	(void)state;
	assert_string_equal(value, "2");
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_launch_puts_its_variables_below_those_of_the_project),
		cmocka_unit_test(what_was_put_into_the_copy_is_kept_at_each_launch_and_told),
		cmocka_unit_test(
			a_variable_of_the_launch_that_was_edited_is_its_owner_s_from_then_on),
		cmocka_unit_test(what_the_project_does_not_say_any_more_goes_and_is_told),
		cmocka_unit_test(a_file_that_no_launch_has_written_keeps_all_values),
		cmocka_unit_test(a_sandbox_without_a_project_keeps_what_was_added_at_the_end),
		cmocka_unit_test(the_same_launch_again_changes_nothing),
		cmocka_unit_test(of_two_values_the_last_one_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
