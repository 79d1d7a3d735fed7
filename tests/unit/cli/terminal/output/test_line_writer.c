/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/line_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int saved, pipes[2];
static struct err err;

static int begin(void **state)
{
	(void)state;
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	return pipe(pipes) < 0 || dup2(pipes[1], STDOUT_FILENO) < 0;
}

/* What was written to standard output, which is the old one again. */
static const char *written(void)
{
	static char text[1024];
	ssize_t n;

	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(pipes[1]);
	n = read(pipes[0], text, sizeof(text) - 1);
	close(pipes[0]);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void add(struct line_writer *writer, const char *text)
{
	assert_int_equal(line_writer_add(writer, STDOUT_FILENO, text, strlen(text), &err), 0);
}

static void each_line_has_the_name_and_goes_out_when_it_is_whole(void **state)
{
	struct line_writer writer = {.prefix = "web | "};

	(void)state;
	add(&writer, "on");
	add(&writer, "e\n\ntwo\nha");
	assert_int_equal(line_writer_flush(&writer, &err), 0);
	line_writer_fini(&writer);
	assert_string_equal(written(), "web | one\nweb | \nweb | two\nweb | ha\n");
}

static void only_the_last_lines_are_kept_and_then_all_go_out(void **state)
{
	struct line_writer writer = {.tail = 2, .holds = true}, *writers[] = {&writer};

	(void)state;
	add(&writer, "a\nb\nc\nd\ne");
	assert_int_equal(line_writer_release(writers, 1, &err), 0);
	add(&writer, "f\ng\n");
	line_writer_fini(&writer);
	assert_string_equal(written(), "c\nd\nef\ng\n");
}

static void less_than_the_tail_is_all_there_is(void **state)
{
	struct line_writer writer = {.tail = 100, .holds = true}, *writers[] = {&writer};

	(void)state;
	add(&writer, "a\nb\n");
	assert_int_equal(line_writer_release(writers, 1, &err), 0);
	line_writer_fini(&writer);
	assert_string_equal(written(), "a\nb\n");
}

static void at(struct line_writer *writer, int64_t at_ms, const char *text)
{
	writer->at_ms = at_ms;
	add(writer, text);
}

static void lines_of_several_come_in_the_order_of_their_times(void **state)
{
	struct line_writer a = {.prefix = "a | ", .holds = true};
	struct line_writer b = {.prefix = "b | ", .holds = true, .tail = 3, .since_ms = 2};
	struct line_writer *writers[] = {&a, &b};

	(void)state;
	at(&a, 1, "one\ntwo ");
	at(&b, 1, "old\n");
	at(&b, 2, "gone\n");
	at(&b, 3, "x\ny\n");
	at(&b, 6, "z\n");
	at(&a, 5, "halves\nlast\nhalf");
	assert_int_equal(line_writer_release(writers, 2, &err), 0);
	at(&a, 7, "\n");
	line_writer_fini(&a);
	line_writer_fini(&b);
	assert_string_equal(written(), "a | one\na | two halves\nb | x\nb | y\na | last\nb | z\n"
				       "a | half\n");
}

static void a_line_has_the_time_of_its_beginning(void **state)
{
	struct line_writer writer = {.prefix = "a | ", .with_times = true};

	(void)state;
	at(&writer, 1, "one");
	at(&writer, 2, "\ntwo\n");
	at(&writer, 0, "three\n");
	line_writer_fini(&writer);
	assert_string_equal(written(), "a | 1970-01-01T00:00:00.001Z one\n"
				       "a | 1970-01-01T00:00:00.002Z two\n"
				       "a | -                        three\n");
}

static void many_lines_are_held(void **state)
{
	struct line_writer writer = {.holds = true}, *writers[] = {&writer};
	char expected[512] = "";

	(void)state;
	for (int i = 0; i < 100; i++) {
		add(&writer, "x\n");
		strcat(expected, "x\n");
	}
	assert_int_equal(line_writer_release(writers, 1, &err), 0);
	line_writer_fini(&writer);
	assert_string_equal(written(), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_line_has_the_name_and_goes_out_when_it_is_whole, begin),
		cmocka_unit_test_setup(only_the_last_lines_are_kept_and_then_all_go_out, begin),
		cmocka_unit_test_setup(lines_of_several_come_in_the_order_of_their_times, begin),
		cmocka_unit_test_setup(a_line_has_the_time_of_its_beginning, begin),
		cmocka_unit_test_setup(many_lines_are_held, begin),
		cmocka_unit_test_setup(less_than_the_tail_is_all_there_is, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
