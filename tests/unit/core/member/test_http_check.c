/* SPDX-License-Identifier: Apache-2.0 */
/* What a member answers over HTTP, byte by byte, and what it is taken for (core/member/http_check.c). */
#include "core/member/http_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void open_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void test_asks(void **state)
{
	char text[128] = "";
	int fds[2];

	(void)state;
	open_pair(fds);
	assert_true(http_check_ask(fds[0], "/up?now"));
	assert_true(read(fds[1], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "GET /up?now HTTP/1.0\r\nHost: localhost\r\n\r\n");
	close(fds[1]);
	assert_false(http_check_ask(fds[0], "/"));
	close(fds[0]);
}

/* Each byte may come by itself, and to look takes nothing away. */
static void test_waits_for_the_whole_status(void **state)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
	int fds[2];

	(void)state;
	open_pair(fds);
	for (size_t i = 0; i < strlen(answer); i++) {
		assert_int_equal(
			http_check_look(fds[0]), i < 10 ? HTTP_CHECK_NONE : HTTP_CHECK_GOOD);
		assert_int_equal(write(fds[1], &answer[i], 1), 1);
	}
	assert_int_equal(http_check_look(fds[0]), HTTP_CHECK_GOOD);
	close(fds[0]);
	close(fds[1]);
}

static void test_judges(void **state)
{
	static const struct {
		const char *text;
		enum http_check_answer answer;
	} rows[] = {
		{"HTTP/1.0 200 OK\r\n", HTTP_CHECK_GOOD},
		{"HTTP/1.1 302 Found\r\n", HTTP_CHECK_GOOD},
		{"HTTP/1.1 404 Not Found\r\n", HTTP_CHECK_BAD},
		{"HTTP/1.1 503 Service Unavailable\r\n", HTTP_CHECK_BAD},
		{"HTTP/2.0 200", HTTP_CHECK_BAD},
		{"SSH-2.0-Open", HTTP_CHECK_BAD},
		{"          2200", HTTP_CHECK_BAD},
		{"", HTTP_CHECK_BAD},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fds[2];

		open_pair(fds);
		assert_int_equal(http_check_look(fds[0]), HTTP_CHECK_NONE);
		say(fds[1], rows[i].text);
		close(fds[1]);
		assert_int_equal(http_check_look(fds[0]), rows[i].answer);
		close(fds[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_waits_for_the_whole_status),
		cmocka_unit_test(test_judges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
