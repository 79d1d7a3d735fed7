/* SPDX-License-Identifier: Apache-2.0 */
/* What an upper layer hides, told by its effect: three directories stand for the three trees. */
#include "agent/files/layer/tree_compare.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct trees {
	char dir[64];
	struct tree_compare compare;
};

static void make_directory(const struct trees *trees, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", trees->dir, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

static void make_file(const struct trees *trees, const char *path)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", trees->dir, path);
	fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static int open_tree(const struct trees *trees, const char *name)
{
	char full[256];
	int fd;

	make_directory(trees, name);
	snprintf(full, sizeof(full), "%s/%s", trees->dir, name);
	fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	struct trees *trees = mem_new(sizeof(*trees));

	snprintf(trees->dir, sizeof(trees->dir), "/tmp/tree_compare.XXXXXX");
	assert_non_null(mkdtemp(trees->dir));
	trees->compare = (struct tree_compare){.upper = open_tree(trees, "upper"),
		.below = open_tree(trees, "below"),
		.merged = open_tree(trees, "merged")};
	*state = trees;
	return 0;
}

static int tear_down(void **state)
{
	struct trees *trees = *state;
	char command[128];

	tree_compare_fini(&trees->compare);
	close(trees->compare.upper);
	close(trees->compare.below);
	close(trees->compare.merged);
	snprintf(command, sizeof(command), "rm -r %s", trees->dir);
	assert_int_equal(system(command), 0);
	free(trees);
	return 0;
}

static void must_give(struct trees *trees, const char *before, const char *expected)
{
	char path[64];

	assert_true(tree_compare_next(&trees->compare, before, path, sizeof(path)));
	assert_string_equal(path, expected);
}

static void must_give_none(struct trees *trees, const char *before)
{
	char path[64];

	assert_false(tree_compare_next(&trees->compare, before, path, sizeof(path)));
}

static void a_merged_directory_hides_nothing(void **state)
{
	struct trees *trees = *state;

	make_file(trees, "below/both");
	make_file(trees, "below/old");
	make_file(trees, "upper/both");
	make_file(trees, "merged/both");
	make_file(trees, "merged/old");
	assert_int_equal(tree_compare_enter(&trees->compare, ""), 0);
	must_give_none(trees, NULL);
}

static void hidden_names_come_in_the_order_of_the_walk(void **state)
{
	static const char *const names[] = {"a", "d", "d/b", "d/c", "d/c/deep", "d/e", "f"};
	struct trees *trees = *state;

	for (size_t i = 0; i < array_len(names); i++) {
		char path[64];

		snprintf(path, sizeof(path), "below/%s", names[i]);
		if (i == 1 || i == 3)
			make_directory(trees, path);
		else
			make_file(trees, path);
	}
	make_directory(trees, "upper/d");
	make_directory(trees, "upper/d/c");
	make_directory(trees, "merged/d");
	make_directory(trees, "merged/d/c");
	assert_int_equal(tree_compare_enter(&trees->compare, ""), 0);
	must_give(trees, "d", "a");
	must_give_none(trees, "d");
	assert_int_equal(tree_compare_enter(&trees->compare, "d"), 0);
	must_give(trees, "d/c", "d/b");
	must_give_none(trees, "d/c");
	assert_int_equal(tree_compare_enter(&trees->compare, "d/c"), 0);
	must_give(trees, NULL, "d/c/deep");
	must_give(trees, NULL, "d/e");
	must_give(trees, NULL, "f");
	must_give_none(trees, NULL);
}

static void a_link_of_the_layer_below_leads_nowhere(void **state)
{
	struct trees *trees = *state;
	char link[128];
	struct stat stat;

	snprintf(link, sizeof(link), "%s/below/link", trees->dir);
	assert_int_equal(symlink("/etc", link), 0);
	assert_int_equal(tree_compare_find(&trees->compare, "link", &stat), 1);
	assert_true(S_ISLNK(stat.st_mode));
	assert_int_equal(tree_compare_find(&trees->compare, "link/passwd", &stat), 0);
	assert_int_equal(tree_compare_find(&trees->compare, "../upper", &stat) <= 0, 1);
	assert_int_equal(tree_compare_enter(&trees->compare, "link"), 0);
	must_give_none(trees, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_merged_directory_hides_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			hidden_names_come_in_the_order_of_the_walk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_link_of_the_layer_below_leads_nowhere, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
