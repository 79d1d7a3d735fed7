/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/code_input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void whole(const char *language, const char *text)
{
	if (!code_input_is_whole(language, text))
		fail_msg("not whole: %s", text);
}

static void begun(const char *language, const char *text)
{
	if (code_input_is_whole(language, text))
		fail_msg("whole: %s", text);
}

static void one_line_of_python_is_whole(void **state)
{
	(void)state;
	whole("python", "\n");
	whole("python", "1 + 1\n");
	whole("python", "x = {'a': 1}\n");
	whole("python", "x: int = 3\n");
	whole("python", "lambda a: a\n");
	whole("python", "print('it is (') # a remark: (\n");
	whole("python", "'\\'('\n");
	whole("python", "''\n");
	whole("python", "'never closed\n");
	whole("python", ")\n");
	whole("python", "!echo '(' \"\n");
	whole("python", "%pip install x[\n");
}

static void brackets_and_long_strings_of_python_go_on(void **state)
{
	(void)state;
	begun("python", "f(1,\n");
	begun("python", "f(1,\n\n");
	whole("python", "f(1,\n\n2)\n");
	begun("python", "'''one\n\n");
	begun("python", "\"\"\"it's \"\" one\n");
	whole("python", "'''one\n# ( two''' \n");
	begun("python", "x = 1 + \\\n");
	whole("python", "x = 1 + \\\n  2\n");
	whole("python", "'one \\\n two'\n");
}

static void a_block_of_python_ends_with_an_empty_line(void **state)
{
	(void)state;
	begun("python", "def f():\n");
	begun("python", "def f(): # why\n");
	begun("python", "def f():\n  return 1\n");
	whole("python", "def f():\n  return 1\n\n");
	begun("python", "@cache\n");
	begun("python", "@cache\ndef f(): pass\n");
	whole("python", "@cache\ndef f(): pass\n  \n");
	begun("python", "f({1:\n2})\nif x:\n");
	begun("python", "%%bash\necho\n");
	whole("python", "%%bash\necho\n\n");
}

static void javascript_goes_on_in_brackets_templates_and_remarks(void **state)
{
	(void)state;
	whole("javascript", "1 + 1\n");
	whole("javascript", "a ? b :\n");
	begun("javascript", "function f() {\n\n");
	whole("javascript", "function f() {\n\n}\n");
	begun("javascript", "`one\n");
	whole("javascript", "`one\n)` // (\n");
	begun("javascript", "/* one\n");
	whole("javascript", "/* one ( \n*/ 1\n");
	whole("javascript", "x = /[(/]\\(/.test(y)\n");
	whole("javascript", "'(' + \"{\"\n");
	begun("javascript", "(a / b) / (c\n");
	whole("javascript", "!x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_of_python_is_whole),
		cmocka_unit_test(brackets_and_long_strings_of_python_go_on),
		cmocka_unit_test(a_block_of_python_ends_with_an_empty_line),
		cmocka_unit_test(javascript_goes_on_in_brackets_templates_and_remarks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
