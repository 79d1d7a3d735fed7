/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of a log and an end; the log is a real one. */
#include "core/execution/outcome.h"

#include "base/clock.h"
#include "core/output/output_segment.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

struct world {
	char dir[64];
	int dir_fd;
	struct output_log *log;
	struct execution_record record;
	struct process_end end;
	json_t *outcome;
	enum execution_status status;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct err err;

	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-outcome-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	world->dir_fd = open(world->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(output_log_open(world->dir_fd, 1, 16u << 20, &world->log, &err), 0);
	world->end.how.reason = END_EXITED;
	world->record.timeout_ms = 5;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	json_decref(world->outcome);
	output_log_unref(world->log);
	output_segment_remove_all(world->dir_fd, 1);
	close(world->dir_fd);
	rmdir(world->dir);
	free(world);
	return 0;
}

static void say(struct world *world, int stream, const char *text)
{
	output_log_append(world->log, stream, clock_wall_ms(), text, strlen(text));
}

static void make(struct world *world, const char *language)
{
	struct outcome_input input = {.record = &world->record,
		.language = language_find(language),
		.log = world->log,
		.to = output_log_end(world->log),
		.end = &world->end,
		.artifacts = json_array()};

	json_decref(world->outcome);
	world->outcome = outcome_make(&input, &world->status);
	assert_non_null(world->outcome);
}

static const char *error_type(struct world *world)
{
	return json_string_value(json_object_get(json_object_get(world->outcome, "error"), "type"));
}

static void streams_and_results_are_told_apart(void **state)
{
	struct world *world = *state;

	say(world, 1, "{\"result\":\"forged\"}\n");
	say(world, 3, "{\"begin\":1}\n{\"res");
	say(world, 2, "noise");
	say(world, 3, "ult\":[1]}\n{\"done\":1}\n");
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_SUCCEEDED);
	assert_int_equal(json_array_size(json_object_get(world->outcome, "result")), 1);
	assert_string_equal(json_string_value(json_object_get(world->outcome, "stdout")),
		"{\"result\":\"forged\"}\n");
	assert_string_equal(json_string_value(json_object_get(world->outcome, "stderr")), "noise");
	assert_true(json_is_null(json_object_get(world->outcome, "error")));
}

static void a_handler_must_come_back_and_a_script_may_end_as_it_likes(void **state)
{
	struct world *world = *state;

	say(world, 3, "{\"begin\":1}\n");
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_SUCCEEDED);
	say(world, 3, "{\"begin\":\"handler\"}\n");
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_FAILED);
	assert_string_equal(error_type(world), "Exit");
}

static void put_nested(char *text, size_t depth)
{
	sprintf(text, "{\"result\":");
	memset(text + strlen(text), '[', depth);
	memset(text + strlen("{\"result\":") + depth, ']', depth);
	strcpy(text + strlen("{\"result\":") + 2 * depth, "}\n");
}

static void a_handler_whose_result_cannot_be_read_has_failed(void **state)
{
	struct world *world = *state;
	char deep[10000];

	say(world, 3, "{\"begin\":\"handler\"}\n");
	put_nested(deep, 4000);
	say(world, 3, deep);
	say(world, 3, "{\"done\":1}\n");
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_FAILED);
	assert_string_equal(error_type(world), "BadResult");
	assert_true(json_is_null(json_object_get(world->outcome, "result")));
	say(world, 3, "{\"result\":null}\n");
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_SUCCEEDED);
}

static void a_result_is_as_long_as_its_line_however_its_numbers_are_written_anew(void **state)
{
	struct world *world = *state;
	auto_free char *line = mem_new(OUTCOME_RESULT_MAX);
	size_t len = (size_t)sprintf(line, "{\"result\":[0.1");

	while (len < OUTCOME_RESULT_MAX - 100)
		len += (size_t)sprintf(line + len, ",0.1");
	strcpy(line + len, "]}\n{\"done\":1}\n");
	say(world, 3, line);
	make(world, "python");
	assert_int_equal(world->status, EXECUTION_SUCCEEDED);
	assert_true(json_array_size(json_object_get(world->outcome, "result")) > 260000);
	assert_int_equal(json_array_size(json_object_get(world->outcome, "truncated")), 0);
}

static void what_the_runner_left_out_is_marked_once(void **state)
{
	struct world *world = *state;
	const json_t *truncated;

	say(world, 3, "{\"cut\":\"results\"}\n{\"cut\":\"results\"}\n{\"cut\":\"error\"}\n");
	say(world, 3, "{\"cut\":\"anything\"}\n{\"cut\":7}\n{\"done\":1}\n");
	make(world, "python");
	truncated = json_object_get(world->outcome, "truncated");
	assert_int_equal(json_array_size(truncated), 2);
	assert_string_equal(json_string_value(json_array_get(truncated, 0)), "results");
	assert_string_equal(json_string_value(json_array_get(truncated, 1)), "error");
}

static void the_end_of_the_process_weighs_more_than_what_it_said(void **state)
{
	static const struct {
		enum end_reason reason;
		enum execution_status status;
		const char *type;
	} cases[] = {{END_TIMEOUT, EXECUTION_TIMEOUT, "Timeout"},
		{END_KILLED, EXECUTION_CANCELLED, "Cancelled"},
		{END_AGENT_LOST, EXECUTION_LOST, "Lost"}, {END_IDLE, EXECUTION_LOST, "Lost"}};
	struct world *world = *state;

	say(world, 3, "{\"result\":1}\n{\"done\":1}\n");
	for (size_t i = 0; i < array_len(cases); i++) {
		world->end.how.reason = cases[i].reason;
		make(world, "python");
		assert_int_equal(world->status, cases[i].status);
		assert_string_equal(error_type(world), cases[i].type);
		assert_true(json_is_null(json_object_get(world->outcome, "result")));
	}
}

static void what_is_missing_or_broken_is_said(void **state)
{
	struct world *world = *state;

	world->end = (struct process_end){.outcome = PROCESS_NOT_RUN,
		.errnum = 2,
		.exit_code = 127,
		.how.reason = END_EXITED};
	make(world, "python");
	assert_string_equal(error_type(world), "LanguageMissing");
	world->end = (struct process_end){
		.exit_code = 139, .how = {.reason = END_SIGNAL, .signal = SIGSEGV}};
	make(world, "python");
	assert_string_equal(error_type(world), "Signal");
	world->end.how = (struct termination){.reason = END_OOM, .signal = SIGKILL};
	make(world, "python");
	assert_string_equal(error_type(world), "OutOfMemory");
}

static void a_shell_s_result_is_json_or_text(void **state)
{
	struct world *world = *state;

	say(world, 3, "\n");
	make(world, "shell");
	assert_true(json_is_null(json_object_get(world->outcome, "result")));
	say(world, 3, "some text\n");
	make(world, "shell");
	assert_string_equal(
		json_string_value(json_object_get(world->outcome, "result")), "some text");
}

static void a_shell_s_result_that_is_too_large_is_an_error_and_bytes_are_base64(void **state)
{
	struct world *world = *state;
	auto_free char *chunk = mem_new((1 << 20) + 1);

	say(world, 3, "\n\xff\n");
	make(world, "shell");
	assert_string_equal(json_string_value(json_object_get(world->outcome, "result")), "/wo=");
	memset(chunk, 'x', 1 << 20);
	say(world, 3, chunk);
	make(world, "shell");
	assert_int_equal(world->status, EXECUTION_FAILED);
	assert_string_equal(error_type(world), "TooLarge");
	assert_true(json_is_null(json_object_get(world->outcome, "result")));
}

static void an_interpreter_that_ends_itself_for_want_of_memory_is_believed(void **state)
{
	struct world *world = *state;

	say(world, 2, "FATAL ERROR: Reached heap limit - JavaScript heap out of memory\n");
	make(world, "javascript");
	assert_null(error_type(world));
	world->end = (struct process_end){.outcome = PROCESS_RAN,
		.exit_code = 134,
		.how = {.reason = END_SIGNAL, .signal = SIGABRT}};
	make(world, "javascript");
	assert_string_equal(error_type(world), "OutOfMemory");
	make(world, "python");
	assert_string_equal(error_type(world), "Signal");
}

static void bytes_that_are_no_text_come_as_base64(void **state)
{
	struct world *world = *state;

	say(world, 1, "\xff\xfe");
	make(world, "shell");
	assert_null(json_object_get(world->outcome, "stdout"));
	assert_string_equal(
		json_string_value(json_object_get(world->outcome, "stdout_base64")), "//4=");
}

static void each_part_has_a_bound_and_the_cut_is_marked(void **state)
{
	struct world *world = *state;
	auto_free char *chunk = mem_new((1 << 20) + 1);
	const json_t *truncated;

	memset(chunk, 'x', 1 << 20);
	say(world, 1, chunk);
	say(world, 1, "one more");
	say(world, 3, "{\"done\":1}\n");
	make(world, "python");
	truncated = json_object_get(world->outcome, "truncated");
	assert_int_equal(json_array_size(truncated), 1);
	assert_string_equal(json_string_value(json_array_get(truncated, 0)), "stdout");
	assert_int_equal(json_string_length(json_object_get(world->outcome, "stdout")), 1 << 20);
	assert_int_equal(world->status, EXECUTION_SUCCEEDED);
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_world(streams_and_results_are_told_apart),
		with_world(a_handler_must_come_back_and_a_script_may_end_as_it_likes),
		with_world(a_handler_whose_result_cannot_be_read_has_failed),
		with_world(a_result_is_as_long_as_its_line_however_its_numbers_are_written_anew),
		with_world(what_the_runner_left_out_is_marked_once),
		with_world(the_end_of_the_process_weighs_more_than_what_it_said),
		with_world(what_is_missing_or_broken_is_said),
		with_world(a_shell_s_result_is_json_or_text),
		with_world(a_shell_s_result_that_is_too_large_is_an_error_and_bytes_are_base64),
		with_world(an_interpreter_that_ends_itself_for_want_of_memory_is_believed),
		with_world(bytes_that_are_no_text_come_as_base64),
		with_world(each_part_has_a_bound_and_the_cut_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
