/* SPDX-License-Identifier: Apache-2.0 */
#include "test_agent_peer.h"

#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_command_that_says_nothing_exits_with_its_status(void **state)
{
	struct peer_result result;

	peer_result_init(&result);
	peer_exec(*state, 7, 0, (const char *[]){"true", NULL});
	peer_collect(*state, 7, true, &result);
	assert_true(result.exited);
	assert_true(result.pid > 1);
	assert_int_equal(result.wait_status, 0);
	assert_int_equal(result.end_offset, 0);
	assert_true(result.duration_us > 0);
	assert_true(result.peak_bytes > 0);
	peer_result_fini(&result);

	peer_run(*state, 8, "exit 41", &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 41);
	peer_result_fini(&result);

	peer_run(*state, 9, "kill -9 $$", &result);
	assert_true(WIFSIGNALED(result.wait_status));
	assert_int_equal(WTERMSIG(result.wait_status), SIGKILL);
	peer_result_fini(&result);
}

static void stdout_and_stderr_are_told_apart(void **state)
{
	struct peer_result result;

	peer_run(*state, 1, "echo one; echo two >&2; echo $MARK; pwd >/dev/stderr", &result);
	peer_assert_text(&result.out, "one\nhere\n");
	peer_assert_text(&result.err, "two\n/\n");
	peer_result_fini(&result);
}

static void a_command_has_its_own_session_and_nothing_else(void **state)
{
	struct peer_result result;

	peer_run(*state, 1,
		"set -- $(cat /proc/self/stat); echo $6 $$; ls /proc/self/fd | tr '\\n' ' '; "
		"echo; grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t'; cat; umask",
		&result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 0);
	buf_append(&result.out, "", 1);
	{
		int session, pid;

		/* ls has a descriptor of its own for the directory. */
		assert_int_equal(sscanf((char *)result.out.data, "%d %d", &session, &pid), 2);
		assert_int_equal(session, pid);
		assert_int_equal((uint32_t)pid, result.pid);
		assert_non_null(strstr((char *)result.out.data, "\n0 1 2 3 \n"));
		assert_non_null(strstr(
			(char *)result.out.data, "SigBlk:0000000000000000SigIgn:0000000000000000"));
		assert_non_null(strstr((char *)result.out.data, "0022\n"));
	}
	peer_result_fini(&result);
}

static void a_workload_looks_worse_to_the_oom_killer(void **state)
{
	struct peer_result result;

	peer_run(*state, 1, "cat /proc/self/oom_score_adj", &result);
	buf_append(&result.out, "", 1);
	assert_true(atoi((char *)result.out.data) >= 500);
	peer_result_fini(&result);
}

static void expect_failure(struct peer *peer, uint32_t id, int stage, int errnum)
{
	struct peer_result result;

	peer_result_init(&result);
	peer_collect(peer, id, true, &result);
	assert_int_equal(result.failed_stage, stage);
	assert_int_equal(result.failed_errno, errnum);
	peer_result_fini(&result);
}

static void what_cannot_be_started_says_at_which_stage(void **state)
{
	struct peer *peer = *state;
	char *dir = peer_make_temp();
	char *script = mem_printf("%s/script", dir);
	char *denied = mem_printf("%s/denied", dir);
	char *path = mem_printf("%s:/nowhere", dir);
	const char *line[] = {"script", "x", NULL};
	struct peer_result result;
	int fd;

	peer_exec(peer, 1, 0, (const char *[]){"no-such-program", NULL});
	expect_failure(peer, 1, AGENT_STAGE_EXEC, ENOENT);
	peer_exec(peer, 2, 0, (const char *[]){"/no/such/program", NULL});
	expect_failure(peer, 2, AGENT_STAGE_EXEC, ENOENT);
	peer_exec(peer, 3, 0, (const char *[]){"/etc/passwd", NULL});
	expect_failure(peer, 3, AGENT_STAGE_EXEC, EACCES);
	peer_exec(peer, 4, 0, (const char *[]){"", NULL});
	expect_failure(peer, 4, AGENT_STAGE_EXEC, ENOENT);
	peer_exec_as(peer, 5, 0, getuid(), "/no/such/dir", "/bin", (const char *[]){"true", NULL});
	expect_failure(peer, 5, AGENT_STAGE_CWD, ENOENT);
	/* -1 would be "leave it as it is": root. */
	peer_exec_as(peer, 6, 0, UINT32_MAX, "/", "/bin", (const char *[]){"true", NULL});
	expect_failure(peer, 6, AGENT_STAGE_SETUP, EINVAL);
	peer_exec(peer, 7, 128, (const char *[]){"true", NULL});
	expect_failure(peer, 7, AGENT_STAGE_SETUP, EINVAL);

	/* A file without the right to run it is EACCES, but only if no later directory has one. */
	fd = open(denied, O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	peer_exec_as(peer, 8, 0, getuid(), "/", path, (const char *[]){"denied", NULL});
	expect_failure(peer, 8, AGENT_STAGE_EXEC, EACCES);

	/* A script without "#!" is the shell's. */
	fd = open(script, O_CREAT | O_WRONLY, 0755);
	assert_true(fd >= 0 && write(fd, "echo $0 $1\n", 11) == 11);
	close(fd);
	peer_result_init(&result);
	peer_exec_as(peer, 9, 0, getuid(), "/", path, line);
	peer_collect(peer, 9, true, &result);
	assert_int_equal(result.wait_status, 0);
	{
		char *expected = mem_printf("%s x\n", script);

		peer_assert_text(&result.out, expected);
		free(expected);
	}
	peer_result_fini(&result);
	peer_remove_temp(dir);
	free(script);
	free(denied);
	free(path);
}

static void root_of_the_sandbox_can_run_commands_as_another_user(void **state)
{
	struct peer_result result;

	peer_result_init(&result);
	if (!peer_has_other_users()) {
		peer_exec_as(*state, 1, 0, 12345, "/", "/bin", (const char *[]){"true", NULL});
		peer_collect(*state, 1, true, &result);
		assert_int_equal(result.failed_stage, AGENT_STAGE_SETUP);
		assert_true(result.failed_errno == EPERM || result.failed_errno == EINVAL);
		return;
	}
	peer_exec_as(*state, 1, 0, 12345, "/", "/usr/bin:/bin",
		(const char *[]){"sh", "-c",
			"id -u; id -g; id -G; grep CapEff /proc/self/status; echo x >/dev/stdout",
			NULL});
	peer_collect(*state, 1, true, &result);
	peer_assert_text(&result.out, "12345\n12345\n12345\nCapEff:\t0000000000000000\nx\n");
	peer_result_fini(&result);
	/* The user's rights count for the working directory. */
	peer_exec_as(*state, 2, 0, 12345, "/root", "/bin", (const char *[]){"true", NULL});
	expect_failure(*state, 2, AGENT_STAGE_CWD, EACCES);
}

static void large_output_arrives_whole_and_in_order(void **state)
{
	struct peer_result result;

	peer_run(*state, 1, "seq 1 2000000", &result);
	assert_int_equal(result.out.len, 14888896);
	assert_memory_equal(result.out.data + result.out.len - 8, "2000000\n", 8);
	peer_result_fini(&result);
}

/* Takes output up to an offset, after which nothing may come: the agent has stopped there. */
static void take_up_to(struct peer *peer, struct peer_result *result, uint64_t offset)
{
	struct peer_frame frame;

	while (result->received < offset) {
		assert_true(peer_next(peer, &frame));
		peer_take(result, &frame);
		peer_frame_free(&frame);
	}
	assert_int_equal(result->received, offset);
	assert_false(peer_next_within(peer, 100, &frame));
}

static void without_acknowledgement_it_stops_at_the_window(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	peer_result_init(&result);
	peer_shell(peer, 1, 0, "seq 1 200000");
	take_up_to(peer, &result, AGENT_OUTPUT_WINDOW);
	peer_ack(peer, 1, 100000);
	take_up_to(peer, &result, AGENT_OUTPUT_WINDOW + 100000);
	peer_ack(peer, 1, result.received);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.received, 1288895);
	peer_result_fini(&result);
}

static void a_new_link_gets_exactly_what_was_not_acknowledged(void **state)
{
	struct peer *peer = *state;
	struct peer_result first, second;
	uint32_t ids[4];

	peer_result_init(&first);
	peer_shell(peer, 77, 0, "seq 1 200000; echo end >&2; exit 3");
	take_up_to(peer, &first, AGENT_OUTPUT_WINDOW);
	peer_ack(peer, 77, 12345);
	take_up_to(peer, &first, AGENT_OUTPUT_WINDOW + 12345);
	peer_drop_link(peer);

	assert_int_equal(peer_attach(peer, ids, 4), 1);
	assert_int_equal(ids[0], 77);
	peer_result_init(&second);
	second.received = 12345;
	peer_collect(peer, 77, true, &second);
	assert_int_equal(WEXITSTATUS(second.wait_status), 3);
	assert_int_equal(second.out.len, 1288895 - 12345);
	peer_assert_text(&second.err, "end\n");
	/* What came twice came the same. */
	assert_memory_equal(second.out.data, first.out.data + 12345, AGENT_OUTPUT_WINDOW - 12345);

	/* The exit is told to every link until it is forgotten. */
	peer_result_fini(&second);
	peer_result_init(&second);
	assert_int_equal(peer_attach(peer, ids, 4), 1);
	second.received = 1288895 + 4;
	peer_collect(peer, 77, true, &second);
	assert_true(second.exited);
	peer_send(peer, AGENT_FORGET, 77, NULL, 0);
	assert_int_equal(peer_attach(peer, ids, 4), 0);
	peer_result_fini(&first);
	peer_result_fini(&second);
}

static void a_command_goes_on_and_ends_while_no_daemon_is_there(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	char *dir = peer_make_temp();
	char *line = mem_printf("read x <%s/go; echo after; touch %s/done", dir, dir);
	char *fifo = mem_printf("%s/go", dir);
	char *done = mem_printf("%s/done", dir);
	uint32_t ids[2];
	int fd;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	peer_result_init(&result);
	peer_shell(peer, 5, 0, line);
	{
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	peer_drop_link(peer);
	fd = open(fifo, O_WRONLY);
	assert_true(fd >= 0 && write(fd, "x\n", 2) == 2);
	close(fd);
	for (int i = 0; access(done, F_OK) < 0 && i < 2000; i++)
		poll(NULL, 0, 5);
	assert_int_equal(peer_attach(peer, ids, 2), 1);
	peer_collect(peer, 5, true, &result);
	peer_assert_text(&result.out, "after\n");
	peer_result_fini(&result);
	peer_remove_temp(dir);
	free(line);
	free(fifo);
	free(done);
}

static void standard_input_is_echoed_and_ends(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	char chunk[1000];
	size_t total = 500000, sent = 0;

	memset(chunk, 'x', sizeof(chunk));
	peer_result_init(&result);
	peer_exec(peer, 1, AGENT_EXEC_STDIN, (const char *[]){"cat", NULL});
	while (!result.exited) {
		struct peer_frame frame;

		while (sent < total &&
			sent + sizeof(chunk) - result.stdin_acked <= AGENT_STDIN_WINDOW) {
			peer_send(peer, AGENT_STDIN, 1, chunk, sizeof(chunk));
			sent += sizeof(chunk);
			if (sent == total)
				peer_send(peer, AGENT_STDIN_CLOSE, 1, NULL, 0);
		}
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		if (frame.kind == AGENT_OUTPUT)
			peer_ack(peer, 1, result.received);
		peer_frame_free(&frame);
	}
	assert_int_equal(result.wait_status, 0);
	assert_int_equal(result.out.len, total);
	assert_int_equal(result.stdin_acked, total);
	peer_result_fini(&result);
}

/* However quickly both are written: a result is never before output that was written before it. */
static void results_have_a_descriptor_of_their_own_behind_the_output_before_them(void **state)
{
	struct peer *peer = *state;
	char result[64] = "", output[64] = "";
	bool has_ended = false;
	uint64_t received = 0;

	peer_shell(peer, 1, AGENT_EXEC_RESULT,
		"for i in 1 2 3; do echo out$i; echo err$i >&2; echo result$i >&3; done");
	while (!has_ended) {
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		has_ended = frame.kind == AGENT_EXITED;
		if (frame.kind == AGENT_OUTPUT) {
			struct unpack in = UNPACK_INIT(frame.payload, frame.len);
			uint64_t offset = unpack_u64(&in);
			int stream = unpack_u8(&in);
			uint32_t age_ms = unpack_u32(&in);
			int len = (int)(in.end - in.at);
			char *text = stream == 3 ? result : output;

			(void)age_ms;
			assert_int_equal(offset, received);
			received += (uint64_t)len;
			snprintf(text + strlen(text), 64 - strlen(text), "%.*s", len,
				(const char *)in.at);
			/* As many lines of each stream as there are results so far. */
			if (stream == 3 && strstr(result, "result3"))
				assert_non_null(strstr(output, "out3"));
			if (stream == 3 && strstr(result, "result1"))
				assert_non_null(strstr(output, "err1"));
		}
		peer_frame_free(&frame);
	}
	assert_string_equal(result, "result1\nresult2\nresult3\n");
	assert_int_equal(strlen(output), 6 * 5);
}

static void a_terminal_or_an_isolated_command_has_no_descriptor_for_results(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	peer_result_init(&result);
	peer_shell(peer, 1, AGENT_EXEC_RESULT | AGENT_EXEC_PTY, "true");
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.failed_stage, AGENT_STAGE_SETUP);
	assert_int_equal(result.failed_errno, EINVAL);
	peer_result_fini(&result);
}

static void what_came_of_the_input_is_told_to_each_new_link(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	char chunk[1000];
	struct peer_frame frame;

	memset(chunk, 'x', sizeof(chunk));
	peer_result_init(&result);
	peer_shell(peer, 1, AGENT_EXEC_STDIN,
		"trap 'wc -c; exit' USR1; echo up; while :; do sleep 0.01; done");
	peer_wait_for_output(peer, &result, 3);
	assert_int_equal(result.stdin_received, 0);
	/* The pipe takes 64 KiB, and the queue keeps what came after. */
	for (int i = 0; i < 100; i++)
		peer_send(peer, AGENT_STDIN, 1, chunk, sizeof(chunk));
	while (result.stdin_acked < 60000) {
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	peer_result_fini(&result);
	peer_result_init(&result);
	assert_int_equal(peer_attach(peer, NULL, 0), 1);
	while (result.stdin_received == 0) {
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	/* What was on its way was lost with the link: the rest is sent again, not less and not more. */
	assert_true(result.stdin_received <= 100000 && result.stdin_received % sizeof(chunk) == 0);
	assert_true(result.stdin_acked >= 60000 && result.stdin_acked < 70000);
	for (uint64_t sent = result.stdin_received; sent < 100000; sent += sizeof(chunk))
		peer_send(peer, AGENT_STDIN, 1, chunk, sizeof(chunk));
	peer_send(peer, AGENT_STDIN_CLOSE, 1, NULL, 0);
	peer_signal(peer, 1, SIGUSR1, false);
	peer_collect(peer, 1, true, &result);
	peer_assert_text(&result.out, "up\n100000\n");
	assert_true(result.pid > 1); /* and that it started */
	peer_result_fini(&result);
}

static void input_beyond_the_window_closes_the_link(void **state)
{
	struct peer *peer = *state;
	char *chunk = mem_new(AGENT_STDIN_WINDOW);

	/* The pipe takes 64 KiB, the queue a window; the third is too much. */
	peer_exec(peer, 1, AGENT_EXEC_STDIN, (const char *[]){"sleep", "60", NULL});
	for (int i = 0; i < 3; i++)
		peer_send(peer, AGENT_STDIN, 1, chunk, AGENT_STDIN_WINDOW);
	assert_true(peer_link_ends(peer));
	free(chunk);
	assert_int_equal(peer_attach(peer, NULL, 0), 1);
}

static void input_that_nobody_reads_is_taken_all_the_same(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	char *chunk = mem_new(60000);
	struct peer_frame frame;

	peer_result_init(&result);
	peer_shell(peer, 1, AGENT_EXEC_STDIN, "exec 0<&-; echo closed; exec sleep 60");
	while (result.out.len == 0) {
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	for (int i = 1; i <= 5; i++) {
		peer_send(peer, AGENT_STDIN, 1, chunk, 60000);
		while (result.stdin_acked < 60000u * (unsigned)i) {
			assert_true(peer_next(peer, &frame));
			peer_take(&result, &frame);
			peer_frame_free(&frame);
		}
	}
	free(chunk);
	peer_result_fini(&result);
}

static void a_signal_reaches_the_main_process_only_or_the_whole_tree(void **state)
{
	struct peer *peer = *state;
	char *dir = peer_make_temp();
	/* One child in the group, one that left the session, and that one's child. */
	char *line = mem_printf("cd %s; sleep 60 & echo $! >a; "
				"setsid sh -c 'echo $$ >b; sleep 60 & echo $! >c; wait' & "
				"while [ ! -s c ]; do sleep 0.01; done; echo up; wait",
		dir);
	struct peer_result result;

	peer_result_init(&result);
	peer_shell(peer, 1, 0, line);
	peer_wait_for_output(peer, &result, 3);
	peer_kill_family(peer, 1, dir, &result);
	peer_result_fini(&result);

	peer_result_init(&result);
	peer_shell(peer, 2, 0,
		"trap 'echo caught; exit 5' USR1; echo up; while :; do sleep 0.01; done");
	peer_wait_for_output(peer, &result, 3);
	peer_signal(peer, 2, SIGUSR1, false);
	peer_collect(peer, 2, true, &result);
	peer_assert_text(&result.out, "up\ncaught\n");
	assert_int_equal(WEXITSTATUS(result.wait_status), 5);
	peer_result_fini(&result);
	peer_remove_temp(dir);
	free(line);
}

static void survivors_of_a_session_can_be_signalled_after_its_leader(void **state)
{
	struct peer *peer = *state;
	char *dir = peer_make_temp();
	char *line = mem_printf("sleep 60 >/dev/null 2>&1 & echo $! >%s/a", dir);
	struct peer_result result;

	peer_run(peer, 1, line, &result);
	assert_int_equal(result.wait_status, 0);
	peer_signal(peer, 1, SIGKILL, true);
	assert_true(peer_is_gone(dir, "a"));
	peer_result_fini(&result);
	peer_remove_temp(dir);
	free(line);
}

static void without_groups(void (*test)(void **))
{
	struct peer peer;
	void *state = &peer;

	peer_start_without_group(&peer);
	assert_int_equal(peer_attach(&peer, NULL, 0), 0);
	test(&state);
	peer_stop(&peer);
}

static void without_groups_a_signal_follows_the_lineage(void **state)
{
	(void)state;
	without_groups(a_signal_reaches_the_main_process_only_or_the_whole_tree);
	without_groups(survivors_of_a_session_can_be_signalled_after_its_leader);
}

static void an_orphan_that_holds_the_pipes_is_not_waited_for(void **state)
{
	struct peer_result result;

	peer_run(*state, 1, "sleep 60 & echo done", &result);
	peer_assert_text(&result.out, "done\n");
	assert_int_equal(result.wait_status, 0);
	peer_result_fini(&result);
	/* Not even one that never stops talking. */
	peer_run(*state, 2, "yes & echo done", &result);
	assert_int_equal(result.wait_status, 0);
	peer_signal(*state, 2, SIGKILL, true);
	peer_signal(*state, 1, SIGKILL, true);
	peer_result_fini(&result);
}

static void frames_about_unknown_ids_are_ignored(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	peer_send(peer, AGENT_STDIN, 99, "x", 1);
	peer_send(peer, AGENT_STDIN_CLOSE, 99, NULL, 0);
	peer_resize(peer, 99, 80, 24);
	peer_signal(peer, 99, SIGKILL, true);
	peer_ack(peer, 99, 5);
	peer_send(peer, AGENT_FORGET, 99, NULL, 0);
	peer_run(peer, 1, "echo still here", &result);
	peer_assert_text(&result.out, "still here\n");
	peer_result_fini(&result);
}

static void a_running_command_that_is_forgotten_is_on_its_own(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	peer_result_init(&result);
	peer_shell(peer, 1, 0, "echo up; exec sleep 60");
	peer_wait_for_output(peer, &result, 3);
	peer_signal(peer, 1, SIGKILL, true);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);
	/* With a group its end is told, since somebody may have been left in it. */
	if (peer->group_path)
		peer_wait_for_nobody(peer, 1, &result);
	assert_false(result.exited);
	peer_result_fini(&result);
	peer_run(peer, 2, "echo next", &result);
	peer_result_fini(&result);
	assert_int_equal(peer_attach(peer, NULL, 0), 1);
}

static void frames_that_break_the_protocol_close_the_link(void **state)
{
	struct peer *peer = *state;
	static const struct {
		uint16_t kind;
		const char *payload;
		size_t len;
	} bad[] = {
		{AGENT_ATTACH, "\1\0\0\0", 4}, /* a second time */
		{AGENT_EXEC, "short", 5},
		{AGENT_SIGNAL, "\11\0\0\0\2", 5},
		{AGENT_SIGNAL, "\0\0\0\0\1", 5},
		{AGENT_ACK, "1234567", 7},
		{AGENT_RESIZE, "\1\0\1", 3},
		{AGENT_RESIZE, "\1\0\1\0\1", 5},
		{AGENT_FORGET, "x", 1},
		{AGENT_FILE, "\1\1\0\0\0/", 6}, /* only a channel begins with it */
		{AGENT_SHUTDOWN, "", 0},
		{AGENT_HELLO, "", 0},
		{0, "", 0},
		{999, "", 0},
	};
	struct peer_result result;

	for (size_t i = 0; i < array_len(bad); i++) {
		peer_send(peer, bad[i].kind, 1, bad[i].payload, bad[i].len);
		assert_true(peer_link_ends(peer));
		peer_attach(peer, NULL, 0);
	}
	/* Not attached first. */
	peer_open_link(peer);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);
	assert_true(peer_link_ends(peer));
	/* Acknowledging what was never sent. */
	peer_attach(peer, NULL, 0);
	peer_run(peer, 1, "echo x", &result);
	peer_ack(peer, 1, 1000);
	assert_true(peer_link_ends(peer));
	peer_result_fini(&result);
	/* An id that is in use. */
	peer_attach(peer, NULL, 0);
	peer_shell(peer, 1, 0, "true");
	assert_true(peer_link_ends(peer));
	peer_attach(peer, NULL, 0);
}

static size_t count_fds(pid_t pid)
{
	auto_free char *line = mem_printf("ls /proc/%d/fd | wc -l", (int)pid);

	return peer_number_of(line);
}

static void many_commands_leave_no_descriptor_behind(void **state)
{
	struct peer *peer = *state;
	unsigned ends = peer->group_path ? 2 : 1; /* the exit, and that nobody is left */
	struct peer_result result;
	size_t before;

	peer_run(peer, 1001, "echo x", &result);
	peer_result_fini(&result);
	/* Not dumpable: only root can look. */
	before = getuid() == 0 ? count_fds(peer->agent) : 0;
	for (uint32_t id = 1; id <= 300; id++)
		peer_shell(peer, id, id % 2 ? AGENT_EXEC_STDIN : 0, "echo x; sleep 60 & exit 0");
	for (uint32_t done = 0; done < 300 * ends;) {
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		done += frame.kind == AGENT_EXITED;
		done += frame.kind == AGENT_SURVIVORS && frame.payload[0] == 0;
		if (frame.kind == AGENT_EXITED) {
			peer_signal(peer, frame.id, SIGKILL, true);
			peer_send(peer, AGENT_FORGET, frame.id, NULL, 0);
		}
		peer_frame_free(&frame);
	}
	peer_run(peer, 1000, "echo x", &result);
	peer_result_fini(&result);
	if (getuid() == 0)
		assert_int_equal(count_fds(peer->agent), before);
	assert_int_equal(peer_attach(peer, NULL, 0), 2);
}

/* Blocks the link: waits until more than that lies in the socket, unread. */
static void wait_until_unread(struct peer *peer, int len)
{
	for (int i = 0; i < DEADLINE_MS; i++) {
		int unread = 0;

		assert_int_equal(ioctl(peer->link, FIONREAD, &unread), 0);
		if (unread > len)
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("the link does not fill");
}

static void a_daemon_that_does_not_read_holds_up_nothing_else(void **state)
{
	enum { COMMANDS = 20 };
	struct peer *peer = *state;
	struct peer_result results[COMMANDS];
	struct peer_answer answer;
	struct peer_frame frame;
	int channel, left = COMMANDS;

	for (uint32_t i = 0; i < COMMANDS; i++) {
		peer_result_init(&results[i]);
		peer_shell(peer, i, 0, "seq 1 60000; echo end >&2");
	}
	wait_until_unread(peer, 100000);
	channel = peer_file_path(peer, AGENT_FILE_STAT, "/");
	assert_int_equal(peer_errnum(channel, &answer), 0);
	close(channel);
	while (left > 0) {
		assert_true(peer_next(peer, &frame));
		peer_take(&results[frame.id], &frame);
		if (frame.kind == AGENT_OUTPUT)
			peer_ack(peer, frame.id, results[frame.id].received);
		left -= frame.kind == AGENT_EXITED;
		peer_frame_free(&frame);
	}
	for (int i = 0; i < COMMANDS; i++) {
		assert_int_equal(results[i].out.len, 348894);
		peer_assert_text(&results[i].err, "end\n");
		peer_result_fini(&results[i]);
	}
}

static void a_command_gets_the_limits_the_agent_was_given(void **state)
{
	struct peer_result result;
	struct rlimit limit;
	char *expected;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	expected = mem_printf("%llu\n%llu\n", (unsigned long long)limit.rlim_cur,
		(unsigned long long)limit.rlim_max);
	peer_run(*state, 1, "ulimit -Sn; ulimit -Hn", &result);
	peer_assert_text(&result.out, expected);
	peer_result_fini(&result);
	free(expected);
}

static void as_pid_one_it_reaps_orphans_and_shuts_down_everybody(void **state)
{
	struct peer peer;
	struct peer_result result;
	int status;

	(void)state;
	peer_start_init(&peer);
	peer_attach(&peer, NULL, 0);
	peer_run(&peer, 1, "echo $PPID; (setsid sleep 60 >/dev/null 2>&1 &); (true &); exit 0",
		&result);
	peer_assert_text(&result.out, "1\n");
	peer_result_fini(&result);
	/* Nobody inside may end it. */
	peer_run(&peer, 2, "kill -9 1; kill -TERM 1; kill -STOP 1; echo alive", &result);
	peer_assert_text(&result.out, "alive\n");
	peer_result_fini(&result);
	peer_send_u32(&peer, AGENT_SHUTDOWN, 0, 600000);
	assert_int_equal(peer_wait(&peer, &status), peer.agent);
	assert_int_equal(status, 0);
	peer_fini(&peer);
}

static void shutdown_ends_all_and_then_the_agent(void **state)
{
	struct peer peer;
	int status;

	(void)state;
	peer_start(&peer);
	peer_attach(&peer, NULL, 0);
	peer_shell(
		&peer, 1, 0, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
	{
		struct peer_result result;

		peer_result_init(&result);
		peer_wait_for_output(&peer, &result, 3);
		peer_send_u32(&peer, AGENT_SHUTDOWN, 0, 15000);
		peer_collect(&peer, 1, false, &result);
		peer_assert_text(&result.out, "up\nbye\n");
		peer_result_fini(&result);
	}
	assert_int_equal(peer_wait(&peer, &status), peer.agent);
	assert_int_equal(status, 0);
	peer_fini(&peer);
}

static void shutdown_does_not_wait_longer_than_its_grace(void **state)
{
	struct peer peer;
	struct peer_result result;
	int status;

	(void)state;
	peer_start(&peer);
	peer_attach(&peer, NULL, 0);
	peer_result_init(&result);
	peer_shell(&peer, 1, 0, "trap '' TERM; echo up; for i in 1 2 3 4 5; do sleep 1; done");
	peer_wait_for_output(&peer, &result, 3);
	peer_send_u32(&peer, AGENT_SHUTDOWN, 0, 50);
	assert_int_equal(peer_wait(&peer, &status), peer.agent);
	assert_int_equal(status, 0);
	kill(-(pid_t)result.pid, SIGKILL);
	peer_result_fini(&result);
	peer_fini(&peer);
}

#define with_agent(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(a_command_that_says_nothing_exits_with_its_status),
		with_agent(stdout_and_stderr_are_told_apart),
		with_agent(a_command_has_its_own_session_and_nothing_else),
		with_agent(a_workload_looks_worse_to_the_oom_killer),
		with_agent(what_cannot_be_started_says_at_which_stage),
		with_agent(root_of_the_sandbox_can_run_commands_as_another_user),
		with_agent(large_output_arrives_whole_and_in_order),
		with_agent(without_acknowledgement_it_stops_at_the_window),
		with_agent(a_new_link_gets_exactly_what_was_not_acknowledged),
		with_agent(a_command_goes_on_and_ends_while_no_daemon_is_there),
		with_agent(standard_input_is_echoed_and_ends),
		with_agent(results_have_a_descriptor_of_their_own_behind_the_output_before_them),
		with_agent(a_terminal_or_an_isolated_command_has_no_descriptor_for_results),
		with_agent(what_came_of_the_input_is_told_to_each_new_link),
		with_agent(input_beyond_the_window_closes_the_link),
		with_agent(input_that_nobody_reads_is_taken_all_the_same),
		with_agent(a_signal_reaches_the_main_process_only_or_the_whole_tree),
		with_agent(survivors_of_a_session_can_be_signalled_after_its_leader),
		cmocka_unit_test(without_groups_a_signal_follows_the_lineage),
		with_agent(an_orphan_that_holds_the_pipes_is_not_waited_for),
		with_agent(frames_about_unknown_ids_are_ignored),
		with_agent(a_running_command_that_is_forgotten_is_on_its_own),
		with_agent(frames_that_break_the_protocol_close_the_link),
		with_agent(many_commands_leave_no_descriptor_behind),
		with_agent(a_daemon_that_does_not_read_holds_up_nothing_else),
		with_agent(a_command_gets_the_limits_the_agent_was_given),
		cmocka_unit_test(as_pid_one_it_reaps_orphans_and_shuts_down_everybody),
		cmocka_unit_test(shutdown_ends_all_and_then_the_agent),
		cmocka_unit_test(shutdown_does_not_wait_longer_than_its_grace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
