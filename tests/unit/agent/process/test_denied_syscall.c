/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the filter refuses (src/agent/denial.c), with a real filter. The commands are this program
 * itself, which then makes the calls that its arguments name and tells what came of them.
 */
#include "agent/process/denied_syscall.h"

#include "base/fd.h"
#include "test_agent_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Harmless, and nothing that a shell, the agent or the C library would call. */
static const int refused[] = {SYS_getitimer, SYS_sched_rr_get_interval};

/* --- the command --- */

static void *call_for_ever(void *arg)
{
	for (;;)
		syscall(SYS_getitimer, 0, arg);
	return NULL;
}

/* "calls NUMBER TIMES...": exits with the errno of the last. */
static int make_calls(int argc, char **argv)
{
	char room[256];
	int errnum = 0;

	for (int i = 2; i + 1 < argc; i += 2) {
		for (int times = atoi(argv[i + 1]); times > 0; times--)
			errnum = syscall(atoi(argv[i]), 0, room) < 0 ? errno : 0;
	}
	return errnum;
}

static int flood(void)
{
	static char room[256];
	pthread_t thread;

	for (int i = 0; i < 16; i++) {
		if (pthread_create(&thread, NULL, call_for_ever, room) != 0)
			return 1;
	}
	puts("up");
	fflush(stdout);
	call_for_ever(room);
	return 0;
}

/* Makes a call when it is told to. */
static int call_on_signal(void)
{
	sigset_t set;
	char room[256];
	int signal_number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("up");
	fflush(stdout);
	sigwait(&set, &signal_number);
	return syscall(SYS_getitimer, 0, room) < 0 ? errno : 0;
}

/* --- the tests --- */

static char own_path[4096];

static int setup(void **state)
{
	struct peer *peer = mem_new(sizeof(*peer));
	uint32_t ids[1];

	peer_start_filtered(peer, refused, array_len(refused));
	peer_attach(peer, ids, 1);
	*state = peer;
	return 0;
}

static char *line_of(const char *before, const char *arguments)
{
	return mem_printf("%s %s %s", before, own_path, arguments);
}

static void run(struct peer *peer, uint32_t id, const char *before, const char *arguments,
	struct peer_result *result)
{
	char *line = line_of(before, arguments);

	peer_run(peer, id, line, result);
	free(line);
}

static char *calls_of(int first, int times)
{
	return mem_printf("calls %d %d", first, times);
}

static void a_refused_call_is_answered_with_eperm_and_told(void **state)
{
	char *both = mem_printf(
		"calls %d 3 %d 2 %d 1", SYS_getitimer, SYS_sched_rr_get_interval, SYS_getitimer);
	struct peer_result result;

	run(*state, 1, "", both, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), EPERM);
	assert_int_equal(result.denied_count, 2);
	assert_int_equal(result.denied[0][0], SYS_getitimer);
	assert_int_equal(result.denied[0][1], 4);
	assert_int_equal(result.denied[1][0], SYS_sched_rr_get_interval);
	assert_int_equal(result.denied[1][1], 2);
	peer_result_fini(&result);
	free(both);
}

static void nothing_is_told_of_a_command_that_was_refused_nothing(void **state)
{
	char *calls = calls_of(SYS_times, 5);
	struct peer_result result;

	run(*state, 1, "", calls, &result);
	assert_int_equal(result.wait_status, 0);
	assert_int_equal(result.denied_count, 0);
	peer_result_fini(&result);
	free(calls);
}

static void each_command_is_told_its_own(void **state)
{
	struct peer *peer = *state;
	struct peer_result results[4];

	for (uint32_t id = 0; id < array_len(results); id++) {
		char *calls = calls_of(SYS_getitimer, 10 * (int)id);
		char *line = line_of("exec", calls);

		peer_result_init(&results[id]);
		peer_shell(peer, id + 1, AGENT_EXEC_STDIN, line);
		free(line);
		free(calls);
	}
	for (uint32_t left = array_len(results); left > 0;) {
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		left -= frame.kind == AGENT_EXITED;
		peer_take(&results[frame.id - 1], &frame);
		peer_frame_free(&frame);
	}
	for (uint32_t id = 0; id < array_len(results); id++) {
		assert_int_equal(results[id].denied_count, id > 0);
		assert_int_equal(results[id].denied[0][1], 10 * id);
		peer_result_fini(&results[id]);
	}
}

static void descendants_count_wherever_they_are(void **state)
{
	char *calls = calls_of(SYS_getitimer, 7);
	struct peer_result result;

	if (!peer_has_groups(*state))
		return;
	run(*state, 1, "setsid -w sh -c 'exec \"$@\"' x setsid -w", calls, &result);
	assert_int_equal(result.denied_count, 1);
	assert_int_equal(result.denied[0][1], 7);
	peer_result_fini(&result);
	free(calls);
}

static void a_flood_keeps_nobody_else_from_work_and_can_be_killed(void **state)
{
	struct peer *peer = *state;
	struct peer_result flood_result, result;
	char *line = line_of("exec", "flood");

	peer_result_init(&flood_result);
	peer_shell(peer, 1, 0, line);
	peer_wait_for_text(peer, &flood_result, "up\n");
	for (uint32_t id = 2; id < 10; id++) {
		peer_run(peer, id, "echo works", &result);
		peer_assert_text(&result.out, "works\n");
		assert_int_equal(result.denied_count, 0);
		peer_result_fini(&result);
	}
	peer_signal(peer, 1, SIGKILL, true);
	peer_collect(peer, 1, true, &flood_result);
	assert_int_equal(WTERMSIG(flood_result.wait_status), SIGKILL);
	assert_int_equal(flood_result.denied[0][0], SYS_getitimer);
	assert_true(flood_result.denied[0][1] > 0);
	peer_result_fini(&flood_result);
	free(line);
}

/* Waits for a text in a file that /proc has about the command. */
static void wait_for_word(uint32_t pid, const char *file, const char *word)
{
	char *path = mem_printf("/proc/%u/%s", pid, file);
	char text[512] = "";

	for (int i = 0; !strstr(text, word); i += 2) {
		assert_true(i < DEADLINE_MS);
		poll(NULL, 0, 2);
		if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
			text[0] = '\0';
	}
	free(path);
}

static void wait_until_it_waits(uint32_t pid)
{
	char *call = mem_printf("%d 0x0 ", SYS_getitimer);

	wait_for_word(pid, "syscall", call);
	free(call);
}

/* One whose call is made while the agent is stopped. */
static void start_one_that_waits(struct peer *peer, struct peer_result *result)
{
	char *line = line_of("exec", "on-signal");

	peer_result_init(result);
	peer_shell(peer, 1, 0, line);
	peer_wait_for_text(peer, result, "up\n");
	kill(peer->agent, SIGSTOP);
	kill((pid_t)result->pid, SIGUSR1);
	wait_until_it_waits(result->pid);
	free(line);
}

static void a_call_waits_for_an_agent_that_is_stopped(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	start_one_that_waits(peer, &result);
	/* A stop and a continuation of its own make it ask again, not twice. */
	kill((pid_t)result.pid, SIGSTOP);
	kill((pid_t)result.pid, SIGCONT);
	wait_until_it_waits(result.pid);
	kill(peer->agent, SIGCONT);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(WEXITSTATUS(result.wait_status), EPERM);
	assert_int_equal(result.denied[0][1], 1);
	peer_result_fini(&result);
}

static void one_that_is_killed_while_it_waits_is_not_counted_and_holds_up_nobody(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	start_one_that_waits(peer, &result);
	kill((pid_t)result.pid, SIGKILL);
	wait_for_word(result.pid, "stat", ") Z ");
	kill(peer->agent, SIGCONT);
	peer_collect(peer, 1, true, &result);
	assert_int_equal(WTERMSIG(result.wait_status), SIGKILL);
	assert_int_equal(result.denied_count, 0);
	peer_result_fini(&result);
	peer_run(peer, 2, "echo works", &result);
	peer_assert_text(&result.out, "works\n");
	peer_result_fini(&result);
}

static void no_command_has_the_listener(void **state)
{
	struct peer_result result;

	peer_run(*state, 1, "ls -l /proc/self/fd | grep -c seccomp", &result);
	peer_assert_text(&result.out, "0\n");
	peer_result_fini(&result);
}

static void a_list_holds_the_first_different_ones_and_counts_no_further_than_it_can(void **state)
{
	struct denied_syscall_list list = {0};

	(void)state;
	for (uint32_t number = 0; number < 3 * AGENT_DENIED_MAX; number++)
		denied_syscall_note(&list, number);
	denied_syscall_note(&list, 5);
	assert_int_equal(list.count, AGENT_DENIED_MAX);
	for (uint32_t i = 0; i < AGENT_DENIED_MAX; i++) {
		assert_int_equal(list.calls[i].number, i);
		assert_int_equal(list.calls[i].times, i == 5 ? 2 : 1);
	}
	list.calls[0].times = UINT32_MAX;
	denied_syscall_note(&list, 0);
	assert_int_equal(list.calls[0].times, UINT32_MAX);
}

#define FILTERED(test) cmocka_unit_test_setup_teardown(test, setup, peer_teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		FILTERED(a_refused_call_is_answered_with_eperm_and_told),
		FILTERED(nothing_is_told_of_a_command_that_was_refused_nothing),
		FILTERED(each_command_is_told_its_own),
		FILTERED(descendants_count_wherever_they_are),
		FILTERED(a_flood_keeps_nobody_else_from_work_and_can_be_killed),
		FILTERED(a_call_waits_for_an_agent_that_is_stopped),
		FILTERED(one_that_is_killed_while_it_waits_is_not_counted_and_holds_up_nobody),
		FILTERED(no_command_has_the_listener),
		cmocka_unit_test(
			a_list_holds_the_first_different_ones_and_counts_no_further_than_it_can),
	};

	if (argc > 1 && strcmp(argv[1], "calls") == 0)
		return make_calls(argc, argv);
	if (argc > 1 && strcmp(argv[1], "flood") == 0)
		return flood();
	if (argc > 1 && strcmp(argv[1], "on-signal") == 0)
		return call_on_signal();
	if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
