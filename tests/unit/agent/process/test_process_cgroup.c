/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in control groups of their own. What needs one says so where none can be made. */
#include "test_agent_peer.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Waits until none but a few empty ones, kept for later, are left. */
static void expect_no_groups_left(const struct peer *peer)
{
	for (int i = 0; i < 1000; i++) {
		if (peer_count_groups(peer) <= 2)
			return;
		poll(NULL, 0, 5);
	}
	fail_msg("%zu groups are left", peer_count_groups(peer));
}

static void a_command_has_a_group_of_its_own(void **state)
{
	struct peer *peer = *state;
	struct peer_result one, two;
	char *group = NULL, *at;

	if (!peer_has_groups(peer))
		return;
	peer_result_init(&one);
	peer_result_init(&two);
	peer_shell(peer, 1, AGENT_EXEC_STDIN, "grep ^0:: /proc/self/cgroup; read x");
	peer_wait_for_text(peer, &one, "\n");
	peer_shell(peer, 2, 0, "setsid sh -c 'grep ^0:: /proc/self/cgroup'");
	peer_collect(peer, 2, true, &two);
	group = strrchr(peer->group_path, '/');
	buf_append(&one.out, "", 1);
	buf_append(&two.out, "", 1);
	at = strstr((char *)one.out.data, group);
	assert_non_null(at);
	assert_int_equal(at[strlen(group)], '/');
	assert_non_null(strstr((char *)two.out.data, group));
	assert_string_not_equal((char *)one.out.data, (char *)two.out.data);
	peer_send(peer, AGENT_STDIN_CLOSE, 1, NULL, 0);
	peer_collect(peer, 1, true, &one);
	expect_no_groups_left(peer);
	peer_result_fini(&one);
	peer_result_fini(&two);
}

static void the_cpu_time_is_that_of_all_descendants(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer_has_groups(peer))
		return;
	/* Nobody waits for the one that works. */
	for (uint32_t id = 1; id <= 2; id++) {
		peer_run(peer, id,
			"(setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo x' "
			"| cat) & sleep 0.05; wait; exec 2>&-",
			&result);
		assert_true(result.cpu_us > 20000);
		peer_result_fini(&result);
	}
	/* And not that of the one who had the group before. */
	peer_run(peer, 3, "true", &result);
	assert_true(result.cpu_us > 0 && result.cpu_us < 20000);
	peer_result_fini(&result);
}

static void survivors_are_told_before_the_exit_and_when_they_are_gone(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	struct peer_frame frame;
	uint32_t ids[4];

	if (!peer_has_groups(peer))
		return;
	peer_run(peer, 1, "exit 0", &result);
	assert_int_equal(result.survivors_told, 0);
	peer_result_fini(&result);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);

	peer_run(peer, 2, "sleep 60 & (setsid sleep 60 &) ; exit 4", &result);
	assert_int_equal(result.survivors_told, 1);
	assert_int_equal(result.survivors, 2);
	assert_int_equal(WEXITSTATUS(result.wait_status), 4);

	/* Each new link hears of them, even after the command was forgotten. */
	peer_result_fini(&result);
	peer_result_init(&result);
	assert_int_equal(peer_attach(peer, ids, 4), 1);
	peer_collect(peer, 2, true, &result);
	assert_int_equal(result.survivors, 2);
	peer_send(peer, AGENT_FORGET, 2, NULL, 0);
	peer_result_fini(&result);
	peer_result_init(&result);
	assert_int_equal(peer_attach(peer, ids, 4), 1);
	assert_int_equal(ids[0], 2);
	while (result.survivors == 0) {
		assert_true(peer_next(peer, &frame));
		peer_take(&result, &frame);
		peer_frame_free(&frame);
	}
	assert_false(result.exited);

	/* They can be signalled, and then the id is gone. */
	peer_signal(peer, 2, SIGTERM, true);
	peer_wait_for_nobody(peer, 2, &result);
	assert_int_equal(peer_attach(peer, ids, 4), 0);
	expect_no_groups_left(peer);
	peer_result_fini(&result);
}

static void the_exit_is_told_before_that_nobody_is_left(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer_has_groups(peer))
		return;
	peer_run(peer, 1, "sleep 0.05 & exit 0", &result);
	assert_int_equal(result.survivors, 1);
	peer_wait_for_nobody(peer, 1, &result);
	peer_result_fini(&result);
	/* Not yet forgotten: what is to be said is said again. */
	peer_result_init(&result);
	assert_int_equal(peer_attach(peer, NULL, 0), 1);
	peer_collect(peer, 1, true, &result);
	peer_wait_for_nobody(peer, 1, &result);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);
	assert_int_equal(peer_attach(peer, NULL, 0), 0);
	peer_result_fini(&result);
}

/* Everything that has ever outrun a kill by names: each writes its number into a file. */
static const char escapees[] =
	"(setsid sh -c '(sh -c \"echo \\$\\$ >a; exec sleep 60\" &)' &); " /* double fork */
	"sh -c 'echo $$ >b; kill -STOP $$' & "				   /* stopped */
	"(trap '' TERM HUP INT; sh -c 'echo $$ >c; exec sleep 60') & "	   /* deaf */
	"while [ ! -s a ] || [ ! -s b ] || [ ! -s c ]; do sleep 0.01; done; echo up; ";

static void a_kill_reaches_whoever_came_of_the_command(void **state)
{
	struct peer *peer = *state;
	char *dir = peer_make_temp();
	char *line = mem_printf("cd %s; %s wait; sleep 60", dir, escapees);
	struct peer_result result;

	if (!peer_has_groups(peer))
		goto out;
	peer_result_init(&result);
	peer_shell(peer, 1, 0, line);
	peer_wait_for_text(peer, &result, "up");
	peer_kill_family(peer, 1, dir, &result);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);
	expect_no_groups_left(peer);
	peer_result_fini(&result);
out:
	peer_remove_temp(dir);
	free(line);
}

static void a_kill_after_the_exit_reaches_those_who_are_left(void **state)
{
	struct peer *peer = *state;
	char *dir = peer_make_temp();
	char *line = mem_printf("cd %s; %s exit 0", dir, escapees);
	struct peer_result result;

	if (!peer_has_groups(peer))
		goto out;
	peer_run(peer, 1, line, &result);
	assert_true(result.survivors >= 3);
	peer_send(peer, AGENT_FORGET, 1, NULL, 0);
	peer_signal(peer, 1, SIGKILL, true);
	peer_wait_for_nobody(peer, 1, &result);
	assert_true(peer_is_gone(dir, "a"));
	assert_true(peer_is_gone(dir, "b"));
	assert_true(peer_is_gone(dir, "c"));
	expect_no_groups_left(peer);
	peer_result_fini(&result);
out:
	peer_remove_temp(dir);
	free(line);
}

static void a_kill_is_faster_than_a_fork_bomb(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer_has_groups(peer))
		return;
	for (uint32_t id = 1; id <= 5; id++) {
		peer_result_init(&result);
		/* Each runs for a moment, forks twice and ends: nobody can be found by name. */
		peer_shell(peer, id, 0,
			"echo up; b() { [ -e /proc/self ] && b & }; "
			"for i in 1 2 3 4 5 6 7 8; do b; done; wait; sleep 60");
		peer_wait_for_text(peer, &result, "up");
		poll(NULL, 0, 20);
		peer_signal(peer, id, SIGKILL, true);
		peer_collect(peer, id, true, &result);
		if (result.survivors > 0)
			peer_wait_for_nobody(peer, id, &result);
		peer_send(peer, AGENT_FORGET, id, NULL, 0);
		peer_result_fini(&result);
	}
	assert_int_equal(peer_attach(peer, NULL, 0), 0);
	expect_no_groups_left(peer);
}

static void a_process_of_many_threads_gets_a_signal_once(void **state)
{
	static const char program[] = "import signal, threading, time, sys\n"
				      "n = 0\n"
				      "def count(*_):\n"
				      "    global n\n"
				      "    n += 1\n"
				      "signal.signal(signal.SIGUSR1, count)\n"
				      "for i in range(20):\n"
				      "    threading.Thread(target=time.sleep, args=(60,), "
				      "daemon=True).start()\n"
				      "print('up', flush=True)\n"
				      "end = time.time() + 0.3\n"
				      "while time.time() < end: time.sleep(0.01)\n"
				      "print('got', n, flush=True)\n";
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer_has_groups(peer))
		return;
	if (access("/usr/bin/python3", X_OK) < 0) {
		print_message("not proven: no python3 to make threads with\n");
		return;
	}
	peer_result_init(&result);
	peer_exec(peer, 1, 0, (const char *[]){"python3", "-c", program, NULL});
	peer_wait_for_text(peer, &result, "up\n");
	peer_signal(peer, 1, SIGUSR1, true);
	peer_collect(peer, 1, true, &result);
	peer_assert_text(&result.out, "up\ngot 1\n");
	peer_result_fini(&result);
}

static void a_command_that_never_ran_leaves_no_group(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer_has_groups(peer))
		return;
	for (uint32_t id = 1; id <= 20; id++) {
		peer_result_init(&result);
		peer_exec(peer, id, 0, (const char *[]){"/no/such/program", NULL});
		peer_collect(peer, id, true, &result);
		assert_int_equal(result.failed_errno, ENOENT);
		peer_result_fini(&result);
	}
	expect_no_groups_left(peer);
}

static int start_with_mounts(void **state)
{
	struct peer *peer = NULL;

	if (getuid() == 0) {
		peer = mem_new(sizeof(*peer));
		peer_start_with_mounts(peer);
		assert_int_equal(peer_attach(peer, NULL, 0), 0);
	}
	*state = peer;
	return 0;
}

static int stop_with_mounts(void **state)
{
	return *state ? peer_teardown(state) : 0;
}

static void a_full_disk_is_told_if_the_command_failed(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer) {
		print_message("not proven: only root can mount a small disk\n");
		return;
	}
	peer_run(peer, 1, "false", &result);
	assert_int_equal(result.flags & AGENT_EXITED_DISK_FULL, 0);
	peer_result_fini(&result);
	peer_run(peer, 2,
		"mount -t tmpfs -o size=64k none /tmp || exit 0; yes >/tmp/file 2>/dev/null",
		&result);
	assert_int_not_equal(result.wait_status, 0);
	assert_int_equal(result.flags, AGENT_EXITED_DISK_WAS_FULL);
	peer_result_fini(&result);
	peer_run(peer, 3, "true", &result);
	assert_int_equal(result.flags, 0);
	peer_result_fini(&result);
	peer_run(peer, 4, "yes >/tmp/other", &result);
	assert_int_equal(result.flags, AGENT_EXITED_DISK_FULL);
	peer_result_fini(&result);
	/* One that only fails beside a full disk does not fail for it. */
	peer_run(peer, 5, "echo no such file >&2; false", &result);
	assert_int_equal(result.flags, AGENT_EXITED_DISK_WAS_FULL);
	peer_result_fini(&result);
}

static void what_the_kernel_refused_is_counted_from_start_to_end(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;

	if (!peer) {
		print_message("not proven: only root can play the kernel's counters\n");
		return;
	}
	peer_run(peer, 1, "true", &result);
	assert_int_equal(result.oom_kills, 0);
	assert_int_equal(result.refused_forks, 0);
	peer_result_fini(&result);
	peer_run(peer, 2,
		"cd /sys/fs/cgroup; echo 'oom_kill 9' >memory/memory.oom_control; "
		"echo max 105 >pids/pids.events",
		&result);
	assert_int_equal(result.oom_kills, 2);
	assert_int_equal(result.refused_forks, 100);
	peer_result_fini(&result);
}

#define with_agent(test)  cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)
#define with_mounts(test) cmocka_unit_test_setup_teardown(test, start_with_mounts, stop_with_mounts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(a_command_has_a_group_of_its_own),
		with_agent(the_cpu_time_is_that_of_all_descendants),
		with_agent(survivors_are_told_before_the_exit_and_when_they_are_gone),
		with_agent(the_exit_is_told_before_that_nobody_is_left),
		with_agent(a_kill_reaches_whoever_came_of_the_command),
		with_agent(a_kill_after_the_exit_reaches_those_who_are_left),
		with_agent(a_kill_is_faster_than_a_fork_bomb),
		with_agent(a_process_of_many_threads_gets_a_signal_once),
		with_agent(a_command_that_never_ran_leaves_no_group),
		with_mounts(a_full_disk_is_told_if_the_command_failed),
		with_mounts(what_the_kernel_refused_is_counted_from_start_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
