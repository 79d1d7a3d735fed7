/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subids.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct subids parse(const char *text)
{
	struct subids subids;

	subids_parse(text, "ann", 1001, &subids);
	return subids;
}

static void a_user_is_lent_what_names_them_or_their_uid(void **state)
{
	struct subids subids =
		parse("bob:100000:65536\nann:165536:65536\n1001:300000:2048\nanna:400000:65536\n");

	(void)state;
	assert_int_equal(subids.range_count, 2);
	assert_int_equal(subids.ranges[0].first, 165536);
	assert_int_equal(subids.ranges[0].count, 65536);
	assert_int_equal(subids.ranges[1].first, 300000);
	assert_int_equal(subids.ranges[1].count, 2048);
	assert_int_equal(subids.total, 65536 + 2048);
}

static void ranges_are_cut_to_whole_sandboxes(void **state)
{
	struct subids subids = parse("ann:100000:1500\nann:200000:1023\nann:300000:1024");

	(void)state;
	assert_int_equal(subids.range_count, 2);
	assert_int_equal(subids.ranges[0].count, 1024);
	assert_int_equal(subids.ranges[1].first, 300000);
	assert_int_equal(subids.total, 2048);
}

static void what_is_free_to_be_lent_lies_above_all_that_was(void **state)
{
	(void)state;
	assert_int_equal(parse("").next_first, 100000);
	assert_int_equal(parse("bob:100000:65536\ncarl:5:10\n").next_first, 165536);
	assert_int_equal(parse("bob:200000:65536\nann:100000:65536\n").next_first, 265536);
}

static void lines_that_are_none_do_not_count(void **state)
{
	static const char *const texts[] = {"ann", "ann:", "ann:100000",
		"ann:100000:", "ann:x:65536", "ann:100000:-1", "ann:0:65536", "ann:100000:0",
		"ann:4294967290:65536", "ann:100000:99999999999999999999", "# ann:100000:65536",
		":::", "\n\n"};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++)
		assert_int_equal(parse(texts[i]).total, 0);
}

static void more_ranges_than_fit_are_left_out(void **state)
{
	char text[4096] = "";
	struct subids subids;

	(void)state;
	for (int i = 0; i < SUBIDS_RANGES_MAX + 5; i++)
		strcat(text, "ann:100000:1024\n");
	subids = parse(text);
	assert_int_equal(subids.range_count, SUBIDS_RANGES_MAX);
	assert_int_equal(subids.total, SUBIDS_RANGES_MAX * 1024);
}

/* A root directory with these files in its /etc, or without them. */
static int make_root(char path[32], const char *subuid, const char *subgid)
{
	const char *const files[][2] = {{"etc/subuid", subuid}, {"etc/subgid", subgid}};
	int root_fd;

	strcpy(path, "/tmp/subids-XXXXXX");
	assert_non_null(mkdtemp(path));
	root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(root_fd, "etc", 0700), 0);
	for (size_t i = 0; i < array_len(files); i++) {
		int fd = files[i][1] ? openat(root_fd, files[i][0], O_WRONLY | O_CREAT, 0600) : -1;

		if (fd >= 0)
			assert_int_equal(
				write(fd, files[i][1], strlen(files[i][1])), strlen(files[i][1]));
		fd_close(fd);
	}
	return root_fd;
}

static void remove_root(int root_fd, const char *path)
{
	(void)unlinkat(root_fd, "etc/subuid", 0);
	(void)unlinkat(root_fd, "etc/subgid", 0);
	assert_int_equal(unlinkat(root_fd, "etc", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(path), 0);
	close(root_fd);
}

static void who_was_lent_both_kinds_has_enough(void **state)
{
	char path[32], remedy[SUBIDS_REMEDY_MAX];
	int root_fd = make_root(path, "ann:100000:65536\n", "1001:200000:1024\n");

	(void)state;
	assert_true(subids_suffice(root_fd, "ann", 1001, remedy));
	remove_root(root_fd, path);
}

static void who_was_not_is_told_the_command_with_ids_that_are_free(void **state)
{
	char path[32], remedy[SUBIDS_REMEDY_MAX];
	int root_fd = make_root(path, "ann:100000:1023\nbob:200000:65536\n", NULL);

	(void)state;
	assert_false(subids_suffice(root_fd, "ann", 1001, remedy));
	assert_string_equal(
		remedy, "sudo usermod --add-subuids 265536-331071 --add-subgids 100000-165535 ann");
	remove_root(root_fd, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_is_lent_what_names_them_or_their_uid),
		cmocka_unit_test(ranges_are_cut_to_whole_sandboxes),
		cmocka_unit_test(what_is_free_to_be_lent_lies_above_all_that_was),
		cmocka_unit_test(lines_that_are_none_do_not_count),
		cmocka_unit_test(more_ranges_than_fit_are_left_out),
		cmocka_unit_test(who_was_lent_both_kinds_has_enough),
		cmocka_unit_test(who_was_not_is_told_the_command_with_ids_that_are_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
