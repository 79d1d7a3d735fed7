/* SPDX-License-Identifier: Apache-2.0 */
#include "test_agent_peer.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void type(struct peer *peer, uint32_t id, const char *text)
{
	peer_send(peer, AGENT_STDIN, id, text, strlen(text));
}

/* From what was shown so far on, so that the same text can be waited for twice. */
static void expect(struct peer *peer, struct peer_result *result, const char *text)
{
	const uint8_t *at;

	peer_wait_for_text(peer, result, text);
	at = memmem(result->out.data, result->out.len, text, strlen(text));
	buf_consume(&result->out, (size_t)(at - result->out.data) + strlen(text));
}

static void begin(struct peer *peer, uint32_t id, const char *line, struct peer_result *result)
{
	peer_result_init(result);
	peer_shell(peer, id, AGENT_EXEC_PTY, line);
}

static void a_terminal_has_the_size_it_was_given_and_all_output_is_stdout(void **state)
{
	struct peer_result result;

	begin(*state, 1, "tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all >&2",
		&result);
	peer_collect(*state, 1, true, &result);
	assert_int_equal(result.wait_status, 0);
	assert_int_equal(result.err.len, 0);
	assert_non_null(memmem(result.out.data, result.out.len, "/dev/pts/", 9));
	/* The terminal turns each newline into two characters. */
	assert_non_null(memmem(result.out.data, result.out.len, "\r\n24 80\r\nall\r\n", 14));
	peer_result_fini(&result);
}

static void what_is_typed_is_echoed_and_read_by_lines(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1,
		"echo up; read line; echo got $line; stty -echo; echo off; read line; echo got "
		"$line",
		&result);
	expect(peer, &result, "up\r\n");
	type(peer, 1, "hellx\177o\n");
	expect(peer, &result, "hellx\b \bo\r\ngot hello\r\noff\r\n");
	type(peer, 1, "secret\n");
	peer_collect(peer, 1, true, &result);
	peer_assert_text(&result.out, "got secret\r\n");
	assert_int_equal(result.stdin_acked, 15);
	assert_int_equal(result.stdin_received, 15);
	peer_result_fini(&result);
}

static void the_end_of_the_input_is_typed(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1, "stty -echo; echo up; cat; stty eof '^B'; echo next; cat; echo end",
		&result);
	expect(peer, &result, "up\r\n");
	type(peer, 1, "one\n");
	peer_send(peer, AGENT_STDIN_CLOSE, 1, NULL, 0);
	expect(peer, &result, "one\r\nnext\r\n");
	/* It was not the end of the terminal, and the command has a say in what it looks like. */
	type(peer, 1, "two\n");
	peer_send(peer, AGENT_STDIN_CLOSE, 1, NULL, 0);
	peer_collect(peer, 1, true, &result);
	peer_assert_text(&result.out, "two\r\nend\r\n");
	assert_int_equal(result.stdin_received, 8);
	peer_result_fini(&result);
}

static void a_new_size_is_told_to_the_command(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1,
		"trap 'stty size; exit 7' WINCH; echo up; while :; do read -r line || sleep 0.01; "
		"done",
		&result);
	expect(peer, &result, "up\r\n");
	peer_resize(peer, 1, 132, 43);
	peer_collect(peer, 1, true, &result);
	assert_non_null(memmem(result.out.data, result.out.len, "43 132\r\n", 8));
	assert_int_equal(WEXITSTATUS(result.wait_status), 7);
	/* Too late, and one without a terminal: nothing happens. */
	peer_resize(peer, 1, 1, 1);
	peer_result_fini(&result);
	peer_result_init(&result);
	peer_shell(peer, 2, AGENT_EXEC_STDIN, "cat");
	peer_resize(peer, 2, 1, 1);
	peer_send(peer, AGENT_STDIN_CLOSE, 2, NULL, 0);
	peer_collect(peer, 2, true, &result);
	assert_int_equal(result.wait_status, 0);
	peer_result_fini(&result);
}

static void keys_interrupt_and_suspend_the_job_in_front(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	peer_result_init(&result);
	peer_exec(peer, 1, AGENT_EXEC_PTY,
		(const char *[]){"bash", "--norc", "--noprofile", "--noediting", "-i", NULL});
	type(peer, 1, "stty -echo; PS1='rea''dy> '\n");
	expect(peer, &result, "ready> ");
	/* One that never forks: a shell whose child is stopped in vfork() could not be. */
	type(peer, 1,
		"sh -c 'trap \"echo resumed\" CONT; echo in-front; while :; do read x; done'\n");
	expect(peer, &result, "in-front\r\n");
	type(peer, 1, "\032");
	expect(peer, &result, "Stopped");
	expect(peer, &result, "ready> ");
	type(peer, 1, "jobs; echo $((6*7))\n");
	expect(peer, &result, "42");
	expect(peer, &result, "ready> ");
	type(peer, 1, "fg\n");
	expect(peer, &result, "resumed\r\n");
	type(peer, 1, "\003");
	expect(peer, &result, "ready> ");
	type(peer, 1, "echo $?\n");
	expect(peer, &result, "130\r\n");
	type(peer, 1, "exit 5\n");
	peer_collect(peer, 1, true, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 5);
	peer_result_fini(&result);
}

static void the_last_words_before_the_exit_all_arrive(void **state)
{
	struct peer_result result;

	for (uint32_t id = 1; id <= 20; id++) {
		begin(*state, id, "seq 1 3000; exit 3", &result);
		peer_collect(*state, id, true, &result);
		assert_int_equal(WEXITSTATUS(result.wait_status), 3);
		assert_int_equal(result.out.len, 13893 + 3000);
		peer_result_fini(&result);
	}
}

static void more_output_than_the_window_waits_for_acknowledgement(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	struct peer_frame frame;

	begin(peer, 1, "seq 1 200000", &result);
	while (result.received < AGENT_OUTPUT_WINDOW) {
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	assert_int_equal(result.received, AGENT_OUTPUT_WINDOW);
	assert_false(peer_next_within(peer, 100, &frame));
	peer_ack(peer, 1, result.received);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.received, 1288895 + 200000);
	peer_result_fini(&result);
}

static void an_orphan_does_not_hold_the_terminal_open(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1, "trap '' HUP; (while :; do echo more; done) & echo up; exit 0", &result);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.wait_status, 0);
	peer_signal(peer, 1, SIGKILL, true);
	peer_result_fini(&result);
}

static void a_terminal_that_nobody_has_open_can_be_opened_again(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1, "exec <&- >&- 2>&-; sleep 0.1; echo back >/dev/tty", &result);
	type(peer, 1, "lost\n");
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.wait_status, 0);
	assert_non_null(memmem(result.out.data, result.out.len, "back\r\n", 6));
	peer_result_fini(&result);
}

static void the_terminal_is_the_users(void **state)
{
	struct peer_result result;

	peer_result_init(&result);
	if (!peer_has_other_users()) {
		print_message("not proven: there are no other users here\n");
		return;
	}
	peer_exec_as(*state, 1, AGENT_EXEC_PTY, 12345, "/", "/usr/bin:/bin",
		(const char *[]){"sh", "-c", "stat -c '%u %g %a' $(tty); echo x >/dev/tty", NULL});
	peer_collect(*state, 1, true, &result);
	peer_assert_text(&result.out, "12345 5 620\r\nx\r\n");
	peer_result_fini(&result);
}

static void a_new_link_goes_on_with_the_terminal(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	begin(peer, 1, "stty -echo; echo up; read x; echo $x", &result);
	expect(peer, &result, "up\r\n");
	peer_drop_link(peer);
	assert_int_equal(peer_attach(peer, NULL, 0), 1);
	type(peer, 1, "again\n");
	peer_result_fini(&result);
	peer_result_init(&result);
	peer_collect(peer, 1, true, &result);
	peer_assert_text(&result.out, "up\r\nagain\r\n");
	peer_result_fini(&result);
}

static void what_cannot_be_started_on_a_terminal_says_why(void **state)
{
	struct peer_result result;

	peer_result_init(&result);
	peer_exec(*state, 1, AGENT_EXEC_PTY, (const char *[]){"/no/such/program", NULL});
	peer_collect(*state, 1, true, &result);
	assert_int_equal(result.failed_stage, AGENT_STAGE_EXEC);
	assert_int_equal(result.failed_errno, ENOENT);
	assert_int_equal(peer_attach(*state, NULL, 0), 0);
	peer_result_fini(&result);
}

#define with_agent(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(a_terminal_has_the_size_it_was_given_and_all_output_is_stdout),
		with_agent(what_is_typed_is_echoed_and_read_by_lines),
		with_agent(the_end_of_the_input_is_typed),
		with_agent(a_new_size_is_told_to_the_command),
		with_agent(keys_interrupt_and_suspend_the_job_in_front),
		with_agent(the_last_words_before_the_exit_all_arrive),
		with_agent(more_output_than_the_window_waits_for_acknowledgement),
		with_agent(an_orphan_does_not_hold_the_terminal_open),
		with_agent(a_terminal_that_nobody_has_open_can_be_opened_again),
		with_agent(the_terminal_is_the_users),
		with_agent(a_new_link_goes_on_with_the_terminal),
		with_agent(what_cannot_be_started_on_a_terminal_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
