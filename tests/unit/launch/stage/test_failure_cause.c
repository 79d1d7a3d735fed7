/* SPDX-License-Identifier: Apache-2.0 */
/* Causes of failures by the last words of programs. */
#include "launch/stage/failure_cause.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void words_of_programs_are_causes(void **state)
{
	static const struct {
		const char *output, *code, *part;
	} cases[] = {
		{"ModuleNotFoundError: No module named 'flask'\n", "missing_module", "flask"},
		{"/usr/bin/python3: No module named uvicorn\n", "missing_module", "uvicorn"},
		{"[Errno 98] error while attempting to bind: address already in use\n",
			"port_in_use", "port"},
		{"/app/a.mjs:2\nx\n\nSyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: no\n",
			"syntax_error", "(/app/a.mjs:2)"},
		{"Transform failed with 1 error:\nserver.ts:2:8: ERROR: Expected \";\"\n",
			"syntax_error", "(server.ts:2)"},
		{"Error: Cannot find module 'left-pad'\n", "missing_module", "left-pad"},
		{"npm error Missing script: \"start\"\n", "missing_script", "start"},
		{"Error: listen EADDRINUSE: address already in use 127.0.0.1:3000\n", "port_in_use",
			"127.0.0.1:3000"},
		{"/app/server.js:2\nlet b = = 2\n\nSyntaxError: Unexpected token '='\n",
			"syntax_error", "(/app/server.js:2)"},
		{"  File \"main.py\", line 3\n    x\nSyntaxError: invalid syntax\n", "syntax_error",
			"(main.py:3)"},
		{"file:///app/server.mjs:2\nlet b = = 2\n\nSyntaxError: Unexpected token '='\n",
			"syntax_error", "(/app/server.mjs:2)"},
		{"  File \"a.py\", line 4\nTabError: inconsistent use of tabs\n", "syntax_error",
			"(a.py:4)"},
		{"Module not found: Can't resolve 'left-pad'\n", "missing_module", "left-pad"},
		{"Port 8501 is already in use\n", "port_in_use", "8501"},
		{"Port 5000 is mine\nModule is already in use\nSyntaxError: no\n", "syntax_error",
			"no"},
		{"npm error code E404\n", "package_not_found", "registry"},
		{"npm error code E404\nnpm error 404  The requested resource 'left@1' could\n",
			"package_not_found", "package: left@1"},
		{"npm error code ETARGET\nnpm error notarget No matching version found for "
		 "ms@99.\n",
			"package_not_found", "version: ms@99."},
		{"npm error code ENOSPC\n", "disk_full", "full"},
		{"OSError: [Errno 28] No space left on device: 'x'\n", "disk_full", "full"},
		{"Error: connect ECONNREFUSED 127.0.0.1:5432\n    at x\n", "connection_refused",
			"at: 127.0.0.1:5432"},
		{"npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error errno x\n",
			"untrusted_certificate", "certificate"},
		{"SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed')\n"
		 "ERROR: No matching distribution found for flask\n",
			"untrusted_certificate", "certificate"},
		{"npm error code EWHATEVER\n", "install_failed", "EWHATEVER"},
		{"no idea\n", "failed", "failed"},
		{"", "failed", "failed"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct failure_cause cause;

		failure_cause_find(cases[i].output, &cause);
		assert_string_equal(cause.code, cases[i].code);
		assert_non_null(strstr(cause.message, cases[i].part));
		assert_true(cause.remedy[0] != '\0');
	}
}

static void a_limit_is_a_cause_by_itself(void **state)
{
	struct failure_cause cause;

	(void)state;
	assert_true(failure_cause_of_limit(
		&(struct termination){.reason = END_OOM, .detail = "the kernel killed node"},
		&cause));
	assert_string_equal(cause.code, "out_of_memory");
	assert_non_null(strstr(cause.message, "memory: the kernel killed node"));
	assert_true(failure_cause_of_limit(&(struct termination){.reason = END_DISK_FULL}, &cause));
	assert_string_equal(cause.code, "disk_full");
	assert_false(failure_cause_of_limit(&(struct termination){.reason = END_EXITED}, &cause));
}

static void the_last_exception_is_read(void **state)
{
	static const struct {
		const char *output, *exception;
	} cases[] = {
		{"Traceback:\n  File x\nValueError: größe\n", "ValueError: größe"},
		{"/a.js:1\nError: one\n    at x\nTypeError: two\n    at y", "TypeError: two"},
		{"django.core.exceptions.ImproperlyConfiguredError: no\n",
			"django.core.exceptions.ImproperlyConfiguredError: no"},
		{"no Error: here\n Error: here\nErrors: x\n", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		char text[FAILURE_CAUSE_EXCEPTION_LEN];

		failure_cause_read_exception(cases[i].output, text);
		assert_string_equal(text, cases[i].exception);
	}
}

static void output_may_be_anything(void **state)
{
	struct failure_cause cause;
	char output[4000];

	(void)state;
	memset(output, '\x1b', sizeof(output) - 1);
	memcpy(output, "SyntaxError: ", 13);
	output[sizeof(output) - 1] = '\0';
	failure_cause_find(output, &cause);
	assert_null(strchr(cause.message, '\x1b'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_programs_are_causes),
		cmocka_unit_test(a_limit_is_a_cause_by_itself),
		cmocka_unit_test(the_last_exception_is_read),
		cmocka_unit_test(output_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
