/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/hung_keeper.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KEEPER "sandlot-keeper"

/* A data directory with a copy of this program under the keeper's name, which stops itself. */
struct scene {
	char dir[64];
	int lock_fd;
	pid_t pid;
};

static void run(const char *format, const char *dir)
{
	char command[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, dir, dir);
#pragma GCC diagnostic pop
	assert_int_equal(system(command), 0);
}

/* The child runs the copy by that name, for that directory. */
static void start(struct scene *scene, const char *name, const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", scene->dir, name);
	scene->pid = fork();
	if (scene->pid == 0) {
		execl(path, KEEPER, dir, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(scene->pid, NULL, WUNTRACED), scene->pid);
	dprintf(scene->lock_fd, "%d\n", scene->pid);
}

static void end(struct scene *scene)
{
	kill(scene->pid, SIGKILL);
	assert_int_equal(waitpid(scene->pid, NULL, 0), scene->pid);
}

static bool lives(const struct scene *scene)
{
	siginfo_t info = {0};

	assert_int_equal(waitid(P_PID, (id_t)scene->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == 0;
}

static int set_up(void **state)
{
	struct scene *scene = mem_new(sizeof(*scene));
	char path[128];

	snprintf(scene->dir, sizeof(scene->dir), "/tmp/sandlot-hung-XXXXXX");
	assert_non_null(mkdtemp(scene->dir));
	run("mkdir %s/run", scene->dir);
	snprintf(path, sizeof(path), "cp /proc/%d/exe %s/" KEEPER, getpid(), scene->dir);
	assert_int_equal(system(path), 0);
	run("cp %s/" KEEPER " %s/other", scene->dir);
	snprintf(path, sizeof(path), "%s/run/keeper.lock", scene->dir);
	scene->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(scene->lock_fd, LOCK_EX | LOCK_NB), 0);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	close(scene->lock_fd);
	run("rm -rf %s", scene->dir);
	free(scene);
	return 0;
}

static void a_keeper_of_the_directory_is_ended_also_when_it_is_stopped(void **state)
{
	struct scene *scene = *state;
	struct err err = {0};

	start(scene, KEEPER, scene->dir);
	assert_true(lives(scene));
	if (hung_keeper_end(scene->dir, &err) < 0)
		fail_msg("%s", err.message);
	assert_false(lives(scene));
	end(scene);
}

static void refuse(struct scene *scene)
{
	struct err err;

	assert_true(hung_keeper_end(scene->dir, &err) < 0);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_true(lives(scene));
	end(scene);
}

static void another_program_that_has_the_number_now_is_left_alone(void **state)
{
	struct scene *scene = *state;

	start(scene, "other", scene->dir);
	refuse(scene);
}

static void the_keeper_of_another_directory_is_left_alone(void **state)
{
	struct scene *scene = *state;

	start(scene, KEEPER, "/tmp");
	refuse(scene);
}

static void a_keeper_that_holds_no_lock_is_left_alone(void **state)
{
	struct scene *scene = *state;

	start(scene, KEEPER, scene->dir);
	assert_int_equal(flock(scene->lock_fd, LOCK_UN), 0);
	refuse(scene);
}

static void a_lock_without_a_number_ends_nobody(void **state)
{
	struct scene *scene = *state;

	start(scene, KEEPER, scene->dir);
	assert_int_equal(ftruncate(scene->lock_fd, 0), 0);
	refuse(scene);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_keeper_of_the_directory_is_ended_also_when_it_is_stopped, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			another_program_that_has_the_number_now_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_keeper_of_another_directory_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_keeper_that_holds_no_lock_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_lock_without_a_number_ends_nobody, set_up, tear_down),
	};

	if (argc == 2 && strcmp(argv[0], KEEPER) == 0)
		return raise(SIGSTOP);
	return cmocka_run_group_tests_name("driver/native/hung_keeper", tests, NULL, NULL);
}
