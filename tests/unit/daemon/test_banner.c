/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says when it serves. */
#include "daemon/banner.h"

#include "base/err.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* What is printed. */
static const char *print(const char *data_dir, const char *code, const struct err *failure)
{
	static char text[4096];
	struct listener listener = {.host = "127.0.0.1", .port = 9090};
	int fd = memfd_create("stdout", MFD_CLOEXEC), before = dup(STDOUT_FILENO);
	ssize_t n;

	assert_true(fd >= 0 && before >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	banner_print(data_dir, &listener, code, failure);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	close(fd);
	close(before);
	return text;
}

static void it_says_where_it_is_and_what_to_try(void **state)
{
	const char *text = print("/srv/data", "tkt_1", NULL);

	(void)state;
	assert_non_null(strstr(text, "serves http://127.0.0.1:9090"));
	assert_non_null(strstr(text, "export SANDLOT_DATA_DIR=/srv/data"));
	assert_non_null(strstr(text, " run -- python3"));
	assert_non_null(strstr(text, "  http://127.0.0.1:9090/login?code=tkt_1\n"));
	assert_null(strstr(text, "cannot"));
}

static void without_sandboxes_it_says_why_and_what_to_do(void **state)
{
	struct err failure;
	const char *text;

	(void)state;
	err_explain(&failure, ERR_UNAVAILABLE, "not_ready", "start it again", "the keeper is gone");
	text = print("/var/lib/sandlot", "", &failure);
	assert_non_null(strstr(text, "Sandboxes cannot be served yet: the keeper is gone.\n"));
	assert_non_null(strstr(text, "What to do: start it again.\n"));
	assert_non_null(strstr(text, "doctor\n"));
	assert_null(strstr(text, "Try"));
	assert_null(strstr(text, "/login"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_where_it_is_and_what_to_try),
		cmocka_unit_test(without_sandboxes_it_says_why_and_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
