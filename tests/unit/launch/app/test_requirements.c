/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of Python that go on in other files. */
#include "../text_files.h"
#include "launch/app/requirements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect(struct text_file *files, const char *dir, const char *expected)
{
	struct file_set set = text_files_set(files);
	char *text = requirements_read(&set, dir, "requirements.txt");

	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
	free(text);
	file_set_fini(&set);
}

static void files_that_others_name_are_read_each_once(void **state)
{
	struct text_file files[] = {
		{"requirements.txt", "-r reqs/base.txt\na # -r none.txt\n-c limits.txt"},
		{"reqs/base.txt", "--requirement=./more.txt\n-r../requirements.txt\nb"},
		{"reqs/more.txt", "c"}, {"limits.txt", "d<2"}, {"none.txt", "x"}, {NULL, NULL}};

	(void)state;
	expect(files, "",
		"-r reqs/base.txt\na # -r none.txt\n-c limits.txt\n"
		"--requirement=./more.txt\n-r../requirements.txt\nb\nd<2\nc\n");
}

static void what_is_not_there_or_leads_out_is_left_out(void **state)
{
	struct text_file files[] = {
		{"api/requirements.txt", "-r ../../out.txt\n-r /etc/passwd\n-r gone.txt\n-r\n"
					 "--requirements-like x\n-r ../base.txt"},
		{"base.txt", "b"}, {"out.txt", "x"}, {NULL, NULL}};

	(void)state;
	expect(files, "api",
		"-r ../../out.txt\n-r /etc/passwd\n-r gone.txt\n-r\n--requirements-like x\n"
		"-r ../base.txt\nb\n");
	expect(files, "", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_others_name_are_read_each_once),
		cmocka_unit_test(what_is_not_there_or_leads_out_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
