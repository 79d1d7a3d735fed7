/* SPDX-License-Identifier: Apache-2.0 */
/* Plain directories stand for groups: they too are removed only when nothing is in them. */
#include "base/clock.h"
#include "keeper/cgroup/cgroup_removals.h"

#include "../../deadline.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char place[] = "/tmp/sandlot-groups-XXXXXX";
static struct cgroup_tree tree;
static struct cgroup_removals removals;

static int set_up(void **state)
{
	(void)state;
	strcpy(strrchr(place, '-'), "-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	tree = CGROUP_TREE_NONE;
	tree.unified_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	removals = (struct cgroup_removals){.tree = &tree};
	return tree.unified_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	cgroup_removals_finish(&removals);
	close(tree.unified_fd);
	return rmdir(place);
}

static void make_group(const char *id)
{
	assert_int_equal(mkdirat(tree.unified_fd, id, 0700), 0);
}

static bool exists(const char *id)
{
	return faccessat(tree.unified_fd, id, F_OK, 0) == 0;
}

static void tell_events(const char *text)
{
	int fd = openat(tree.unified_fd, "one/cgroup.events", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void await_removal(const char *id)
{
	uint64_t until_ms = clock_steady_ms() + DEADLINE_MS;

	while (exists(id) && clock_steady_ms() < until_ms) {
		int due_ms = cgroup_removals_tend(&removals);

		usleep(due_ms > 0 ? (unsigned)due_ms * 1000 : 0);
	}
	assert_false(exists(id));
}

static void groups_go_a_moment_later(void **state)
{
	(void)state;
	assert_int_equal(cgroup_removals_tend(&removals), -1);
	make_group("one");
	make_group("two");
	cgroup_removals_add(&removals, "one");
	cgroup_removals_add(&removals, "two");
	assert_true(exists("one"));
	await_removal("one");
	await_removal("two");
	assert_int_equal(cgroup_removals_tend(&removals), -1);
}

static void a_name_that_is_wanted_again_goes_at_once(void **state)
{
	(void)state;
	make_group("one");
	make_group("two");
	cgroup_removals_add(&removals, "one");
	cgroup_removals_add(&removals, "two");
	cgroup_removals_hurry(&removals, "two");
	assert_true(exists("one"));
	assert_false(exists("two"));
	cgroup_removals_hurry(&removals, "three");
	cgroup_removals_finish(&removals);
	assert_false(exists("one"));
}

/* Else the second of the two would meet the groups of the next sandbox of that name. */
static void a_name_waits_only_once(void **state)
{
	(void)state;
	make_group("one");
	cgroup_removals_add(&removals, "one");
	cgroup_removals_add(&removals, "one");
	cgroup_removals_hurry(&removals, "one");
	assert_int_equal(cgroup_removals_tend(&removals), -1);
}

static void what_cannot_go_now_is_tried_again(void **state)
{
	(void)state;
	make_group("one");
	make_group("one/child");
	make_group("one/child/grandchild");
	cgroup_removals_add(&removals, "one");
	usleep(2000);
	assert_true(cgroup_removals_tend(&removals) >= 0);
	assert_true(exists("one"));
	assert_int_equal(unlinkat(tree.unified_fd, "one/child/grandchild", AT_REMOVEDIR), 0);
	await_removal("one");
}

/* Of a busy keeper one turn ends many sandboxes: what waits would grow for as long as it is busy. */
static void of_many_only_some_wait_for_the_next_turn(void **state)
{
	char id[KEEPER_ID_LEN + 1];
	unsigned left = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "many-%u", i);
		make_group(id);
		cgroup_removals_add(&removals, id);
	}
	usleep(2000);
	assert_true(cgroup_removals_tend(&removals) >= 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "many-%u", i);
		left += exists(id);
	}
	assert_in_range(left, 1, 16);
}

/* Else groups of a sandbox that runs would be removed below it, and its own were tried for ever. */
static void what_the_next_sandbox_has_is_left_alone(void **state)
{
	(void)state;
	make_group("one");
	make_group("one/child");
	make_group("one/child/grandchild");
	cgroup_removals_add(&removals, "one");
	cgroup_removals_hurry(&removals, "one");
	assert_true(exists("one"));
	assert_int_equal(cgroup_removals_tend(&removals), -1);
	assert_int_equal(unlinkat(tree.unified_fd, "one/child/grandchild", AT_REMOVEDIR), 0);
	cgroup_removals_add(&removals, "one");
	await_removal("one");
}

static void the_kernel_says_whether_a_process_is_in_a_group(void **state)
{
	(void)state;
	assert_false(cgroup_has_processes(&CGROUP_TREE_NONE, "one"));
	assert_false(cgroup_has_processes(&tree, "one"));
	make_group("one");
	tell_events("populated 1\nfrozen 0\n");
	assert_true(cgroup_has_processes(&tree, "one"));
	tell_events("populated 0\nfrozen 1\n");
	assert_false(cgroup_has_processes(&tree, "one"));
	assert_int_equal(unlinkat(tree.unified_fd, "one/cgroup.events", 0), 0);
	assert_int_equal(unlinkat(tree.unified_fd, "one", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_go_a_moment_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_name_that_is_wanted_again_goes_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_waits_only_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_go_now_is_tried_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_many_only_some_wait_for_the_next_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_the_next_sandbox_has_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_kernel_says_whether_a_process_is_in_a_group, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
