/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char output[16384];

/* Runs with standard error in a pipe; what was written is in output. */
static void capture(void (*speak)(void))
{
	int pipe_fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
	log_open("tester", LOG_INFO);
	speak();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipe_fds[1]);
	n = read(pipe_fds[0], output, sizeof(output) - 1);
	output[n > 0 ? n : 0] = '\0';
	close(pipe_fds[0]);
}

/* The same with standard error on a terminal. */
static void capture_on_terminal(void (*speak)(void))
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), saved = dup(STDERR_FILENO);
	int terminal;
	ssize_t n;

	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0 && dup2(terminal, STDERR_FILENO) >= 0);
	log_open("sandlotd", LOG_INFO);
	speak();
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = read(master, output, sizeof(output) - 1);
	output[n > 0 ? n : 0] = '\0';
	close(terminal);
	close(master);
}

static json_t *line(void)
{
	json_t *object;

	assert_non_null(strchr(output, '\n'));
	assert_string_equal(strchr(output, '\n'), "\n"); /* one line */
	object = json_loads(output, 0, NULL);
	if (!object)
		fail_msg("not JSON: %s", output);
	return object;
}

static void say_something(void)
{
	log_warning("sandbox %s: %d", "x", 5);
}

static void say_quotes(void)
{
	log_error("he said \"no\" and \033[2J");
}

static void on_a_terminal_a_line_is_for_people(void **state)
{
	(void)state;
	capture_on_terminal(say_something);
	assert_int_equal(strspn(output, "0123456789:"), strlen("14:03:07"));
	assert_string_equal(output + strlen("14:03:07"), "  warning: sandbox x: 5\r\n");
	capture_on_terminal(say_quotes);
	assert_string_equal(
		output + strlen("14:03:07"), "  error: he said \"no\" and \\u001b[2J\r\n");
}

static void a_line_is_a_json_object(void **state)
{
	json_t *object;

	(void)state;
	capture(say_something);
	object = line();
	assert_string_equal(json_string_value(json_object_get(object, "message")), "sandbox x: 5");
	assert_string_equal(json_string_value(json_object_get(object, "level")), "warning");
	assert_string_equal(json_string_value(json_object_get(object, "program")), "tester");
	assert_int_equal(json_string_length(json_object_get(object, "time")), 24);
	json_decref(object);
}

static void say_evil(void)
{
	log_error("name \"\\\x01\x1b[2J\r\n{\"time\":\"forged\"}\x7f end");
}

static void nothing_that_is_logged_can_forge_a_line(void **state)
{
	json_t *object;

	(void)state;
	capture(say_evil);
	assert_null(strchr(output, '\x1b'));
	object = line();
	assert_string_equal(json_string_value(json_object_get(object, "message")),
		"name \"\\\x01\x1b[2J\r\n{\"time\":\"forged\"}\x7f end");
	json_decref(object);
}

static void say_too_much(void)
{
	static char huge[5000];

	memset(huge, '"', sizeof(huge) - 1); /* each becomes six bytes */
	log_info("%s", huge);
}

static void a_line_too_long_is_cut_and_stays_json(void **state)
{
	json_t *object;

	(void)state;
	capture(say_too_much);
	object = line();
	assert_true(json_string_length(json_object_get(object, "message")) > 100);
	json_decref(object);
}

static void say_little(void)
{
	log_debug("not to be seen");
}

static void what_is_below_the_level_is_not_written(void **state)
{
	(void)state;
	capture(say_little);
	assert_string_equal(output, "");
}

static void say_of_another_thread(void)
{
	const struct log_subject none = log_subject();
	struct log_subject taken;

	log_set_request("r-1", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01");
	taken = log_subject();
	log_set_subject(&none);
	assert_string_equal(log_subject().request, "");
	log_set_subject(&taken);
	log_info("for a request");
	log_set_subject(NULL);
}

static void what_is_done_elsewhere_names_its_request(void **state)
{
	json_t *object;

	(void)state;
	capture(say_of_another_thread);
	object = line();
	assert_string_equal(json_string_value(json_object_get(object, "request_id")), "r-1");
	assert_non_null(json_object_get(object, "trace_id"));
	json_decref(object);
}

static void a_subject_of_another_program_is_plain_text_that_ends(void **state)
{
	struct log_subject subject = {.request = "my.id-1_2", .trace = ""};

	(void)state;
	assert_true(log_subject_is_plain(&subject));
	strcpy(subject.request, "x\",\"level\":\"forged");
	assert_false(log_subject_is_plain(&subject));
	strcpy(subject.request, "ok");
	memset(subject.trace, 'a', sizeof(subject.trace));
	assert_false(log_subject_is_plain(&subject));
}

static void fail_and_log(void)
{
	errno = EXDEV;
	log_info("errno survives");
	assert_int_equal(errno, EXDEV);
	close(STDERR_FILENO);
	errno = EXDEV;
	log_info("also when it cannot be written");
	assert_int_equal(errno, EXDEV);
}

static void errno_survives_the_log(void **state)
{
	(void)state;
	capture(fail_and_log);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_terminal_a_line_is_for_people),
		cmocka_unit_test(a_line_is_a_json_object),
		cmocka_unit_test(nothing_that_is_logged_can_forge_a_line),
		cmocka_unit_test(a_line_too_long_is_cut_and_stays_json),
		cmocka_unit_test(what_is_done_elsewhere_names_its_request),
		cmocka_unit_test(a_subject_of_another_program_is_plain_text_that_ends),
		cmocka_unit_test(what_is_below_the_level_is_not_written),
		cmocka_unit_test(errno_survives_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
