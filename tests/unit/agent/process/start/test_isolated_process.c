/* SPDX-License-Identifier: Apache-2.0 */
/* Isolated commands (src/agent/isolated_process.c, src/agent/isolated init.c), in a pid namespace that the test makes. */
#include "base/fd.h"
#include "test_agent_peer.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Starts a line in an isolated command; the pid of its isolated init. */
static pid_t start(struct peer *peer, uint32_t id, unsigned flags, const char *line,
	struct peer_result *result)
{
	int sock;
	pid_t isolated_init = peer_start_isolated_init(peer, &sock);

	peer_result_init(result);
	peer_shell_in_cell(peer, id, flags, line, sock);
	close(sock);
	return isolated_init;
}

/* The isolated init ends with its command. */
static void finish(struct peer *peer, uint32_t id, pid_t isolated_init, struct peer_result *result)
{
	peer_collect(peer, id, true, result);
	assert_int_equal(waitpid(isolated_init, NULL, 0), isolated_init);
}

static void a_command_runs_and_ends_in_its_cell(void **state)
{
	struct peer_result result;
	pid_t isolated_init = start(*state, 1, 0, "echo $$ $MARK; echo err >&2; exit 7", &result);

	finish(*state, 1, isolated_init, &result);
	peer_assert_text(&result.out, "2 here\n");
	peer_assert_text(&result.err, "err\n");
	assert_int_equal(WEXITSTATUS(result.wait_status), 7);
	assert_int_equal(result.survivors_told, 0);
	assert_true(result.peak_bytes > 0);
	peer_result_fini(&result);
}

static void its_pid_is_the_one_that_we_see(void **state)
{
	struct peer_result result;
	pid_t isolated_init =
		start(*state, 1, AGENT_EXEC_STDIN, "echo up; read x; exit 3", &result);

	peer_wait_for_text(*state, &result, "up\n");
	assert_int_equal(kill((pid_t)result.pid, 0), 0);
	assert_int_not_equal(result.pid, isolated_init);
	peer_send(*state, AGENT_STDIN, 1, "x\n", 2);
	finish(*state, 1, isolated_init, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 3);
	peer_result_fini(&result);
}

static void a_signal_reaches_its_main_process(void **state)
{
	struct peer_result result;
	pid_t isolated_init =
		start(*state, 1, 0, "trap 'exit 5' USR1; echo up; while :; do :; done", &result);

	peer_wait_for_text(*state, &result, "up\n");
	peer_signal(*state, 1, SIGUSR1, false);
	finish(*state, 1, isolated_init, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 5);
	peer_result_fini(&result);
}

static void all_that_it_started_ends_with_it(void **state)
{
	struct peer_result result;
	pid_t isolated_init = start(*state, 1, 0,
		"setsid sleep 7201 & (setsid sleep 7201 &); echo up; exit 0", &result);

	finish(*state, 1, isolated_init, &result);
	assert_int_equal(result.survivors_told, 0);
	/* Its status came after the last of them. */
	assert_int_not_equal(system("grep -aqx 'sleep.7201.' /proc/[0-9]*/cmdline 2>/dev/null"), 0);
	peer_result_fini(&result);
}

static void a_command_that_is_refused_takes_its_cell_along(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	int sock;
	pid_t isolated_init = peer_start_isolated_init(peer, &sock);

	peer_result_init(&result);
	peer_shell_in_cell(peer, 1, 1u << 20, "true", sock);
	close(sock);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(result.failed_stage, AGENT_STAGE_SETUP);
	assert_int_equal(result.failed_errno, EINVAL);
	assert_int_equal(waitpid(isolated_init, NULL, 0), isolated_init);
	peer_result_fini(&result);
}

static void a_cell_that_dies_under_its_command_killed_it(void **state)
{
	struct peer_result result;
	pid_t isolated_init = start(*state, 1, 0, "echo up; exec sleep 7202", &result);

	peer_wait_for_text(*state, &result, "up\n");
	kill(isolated_init, SIGKILL);
	finish(*state, 1, isolated_init, &result);
	assert_int_equal(WTERMSIG(result.wait_status), SIGKILL);
	peer_result_fini(&result);
}

/* Whatever is at the other end of the socket, the agent goes on. */
static void a_cell_that_is_none_fails_and_nothing_else_does(void **state)
{
	static const char noise[4096];
	static const size_t lengths[] = {0, 1, 8, sizeof(noise)};
	struct peer *peer = *state;

	for (uint32_t i = 0; i < array_len(lengths); i++) {
		struct peer_result result;
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		assert_int_equal(fd_write_full(ends[1], noise, lengths[i]), 0);
		close(ends[1]);
		peer_result_init(&result);
		peer_shell_in_cell(peer, i + 1, 0, "true", ends[0]);
		close(ends[0]);
		peer_collect(peer, i + 1, true, &result);
		assert_int_equal(result.failed_stage, AGENT_STAGE_SETUP);
		peer_result_fini(&result);
	}
	{
		struct peer_result result;

		peer_run(peer, 100, "echo works", &result);
		peer_assert_text(&result.out, "works\n");
		peer_result_fini(&result);
	}
}

static void a_cell_without_a_socket_ends_the_link(void **state)
{
	struct peer *peer = *state;

	peer_shell(peer, 1, AGENT_EXEC_ISOLATED, "true");
	assert_true(peer_link_ends(peer));
}

static void a_new_link_hears_of_it_and_of_its_end(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	uint32_t ids[2];
	pid_t isolated_init = start(peer, 1, AGENT_EXEC_STDIN, "echo up; read x; exit 4", &result);

	peer_wait_for_text(peer, &result, "up\n");
	peer_ack(peer, 1, 3);
	peer_drop_link(peer);
	assert_int_equal(peer_attach(peer, ids, 2), 1);
	peer_send(peer, AGENT_STDIN, 1, "x\n", 2);
	finish(peer, 1, isolated_init, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), 4);
	peer_result_fini(&result);
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_PEER(a_command_runs_and_ends_in_its_cell),
		WITH_PEER(its_pid_is_the_one_that_we_see),
		WITH_PEER(a_signal_reaches_its_main_process),
		WITH_PEER(all_that_it_started_ends_with_it),
		WITH_PEER(a_command_that_is_refused_takes_its_cell_along),
		WITH_PEER(a_cell_that_dies_under_its_command_killed_it),
		WITH_PEER(a_cell_that_is_none_fails_and_nothing_else_does),
		WITH_PEER(a_cell_without_a_socket_ends_the_link),
		WITH_PEER(a_new_link_hears_of_it_and_of_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
