/* SPDX-License-Identifier: Apache-2.0 */
/* The two tables of a watch: directories, and names that are remembered for a while. */
#include "agent/files/watch/dir_tree.h"
#include "agent/files/watch/name_set.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct stat no_stat;

static void assert_path(const struct dir_node *node, const char *name, const char *path)
{
	char text[AGENT_PATH_MAX];

	assert_int_equal(dir_tree_path(node, name, text), 0);
	assert_string_equal(text, path);
}

static void count(void *arg, int wd)
{
	(void)wd;
	(*(int *)arg)++;
}

static void directories_are_found_by_watch_and_by_name(void **state)
{
	struct dir_tree tree = {0};
	struct dir_node *root, *a, *b;
	int removed = 0;

	(void)state;
	assert_null(dir_tree_find(&tree, 1));
	root = dir_tree_add(&tree, NULL, "", 1, &no_stat);
	a = dir_tree_add(&tree, root, "a", 2, &no_stat);
	b = dir_tree_add(&tree, a, "b", 3, &no_stat);
	assert_ptr_equal(dir_tree_find(&tree, 3), b);
	assert_ptr_equal(dir_tree_child(&tree, a, "b"), b);
	assert_null(dir_tree_child(&tree, root, "b"));
	assert_path(root, "", "");
	assert_path(root, "x", "x");
	assert_path(b, "", "a/b");
	assert_path(b, "x", "a/b/x");
	dir_tree_move(&tree, b, root, "c");
	assert_null(dir_tree_child(&tree, a, "b"));
	assert_path(b, "x", "c/x");
	assert_true(dir_tree_is_within(b, root) && dir_tree_is_within(b, b));
	assert_false(dir_tree_is_within(b, a));
	dir_tree_move(&tree, a, b, "a");
	assert_path(a, "", "c/a");
	dir_tree_remove(&tree, b, count, &removed);
	assert_int_equal(removed, 2);
	assert_int_equal(tree.count, 1);
	assert_null(dir_tree_find(&tree, 2));
	dir_tree_fini(&tree);
}

/* Deep and wide, and taken out without recursion. */
static void thousands_come_and_go(void **state)
{
	struct dir_tree tree = {0};
	struct dir_node *at = dir_tree_add(&tree, NULL, "", 0, &no_stat);
	char path[AGENT_PATH_MAX], name[16];
	int removed = 0;

	(void)state;
	for (int wd = 1; wd < 5000; wd++)
		at = dir_tree_add(&tree, at, "d", wd, &no_stat);
	assert_int_equal(dir_tree_path(at, "", path), -ENAMETOOLONG);
	for (int wd = 5000; wd < 10000; wd++) {
		snprintf(name, sizeof(name), "%d", wd);
		dir_tree_add(&tree, at, name, wd, &no_stat)->round = 7;
	}
	for (int wd = 0; wd < 10000; wd++)
		assert_int_equal(dir_tree_find(&tree, wd)->wd, wd);
	for (struct dir_node *node = at; node; node = node->parent)
		node->round = 7;
	dir_tree_find(&tree, 6000)->round = 6;
	dir_tree_remove_unmet(&tree, 7, count, &removed);
	assert_int_equal(removed, 1);
	dir_tree_find(&tree, 2500)->round = 6; /* with all that is below it */
	dir_tree_remove_unmet(&tree, 7, count, &removed);
	assert_int_equal(removed, 1 + 4999 + 2500);
	assert_int_equal(tree.count, 2500);
	dir_tree_fini(&tree);
}

static void names_are_kept_in_order_and_bounded(void **state)
{
	struct name_set set = {.max = 3};

	(void)state;
	assert_true(name_set_put(&set, 1, "a", 10));
	assert_true(name_set_put(&set, 2, "a", 20));
	assert_true(name_set_put(&set, 1, "a", 30)); /* it is there already */
	assert_true(name_set_put(&set, 1, "b", 40));
	assert_false(name_set_put(&set, 1, "c", 50));
	assert_int_equal(name_set_oldest(&set)->due_ms, 10);
	assert_true(name_set_take(&set, 1, "a"));
	assert_false(name_set_take(&set, 1, "a"));
	assert_int_equal(name_set_oldest(&set)->due_ms, 20);
	assert_true(name_set_take(&set, 1, "b"));
	assert_true(name_set_put(&set, 1, "c", 50));
	name_set_fini(&set);
	assert_null(name_set_oldest(&set));
	assert_true(name_set_put(&set, 1, "c", 50));
	name_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directories_are_found_by_watch_and_by_name),
		cmocka_unit_test(thousands_come_and_go),
		cmocka_unit_test(names_are_kept_in_order_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
