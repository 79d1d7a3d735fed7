/* SPDX-License-Identifier: Apache-2.0 */
/* Who the user of an image is, by the image's own files, whatever is in them. */
#include "base/buf.h"
#include "wire/user_lookup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "\n:::\nhalf:x\nhuge:x:70000:1::/:\nminus:x:-1:1::/:\n"
			     "app:x:123:124:App:/srv/app:/bin/sh\n"
			     "1000:x:7:8:a name of digits:/seven:\n"
			     "again:x:123:9::/other:\n"
			     "nohome:x:55:55::relative:\n"
			     "last:x:77:7";
static const char group[] = "root:x:0:\nteam:x:300:app\nbad:x:x:\nlast:x:301";

static enum agent_user_fault find(const char *text, struct user_lookup *ret_user)
{
	return user_lookup_find(text, passwd, group, ret_user);
}

static void assert_user(const char *text, uint32_t uid, uint32_t gid, const char *home)
{
	struct user_lookup user;

	assert_int_equal(find(text, &user), AGENT_USER_FOUND);
	assert_int_equal(user.uid, uid);
	assert_int_equal(user.gid, gid);
	assert_string_equal(user.home, home);
}

static void a_name_or_number_is_found_with_its_group_and_home(void **state)
{
	(void)state;
	assert_user("", 0, 0, "/root");
	assert_user("root", 0, 0, "/root");
	assert_user("app", 123, 124, "/srv/app");
	assert_user("123", 123, 124, "/srv/app");
	assert_user("app:team", 123, 300, "/srv/app");
	assert_user("app:", 123, 124, "/srv/app");
	assert_user(":team", 0, 300, "/root");
	assert_user("app:301", 123, 301, "/srv/app");
	assert_user("last:last", 77, 301, "");
	assert_user("1000", 7, 8, "/seven"); /* a name goes before a number */
	assert_user("4242", 4242, 4242, "");
	assert_user("4242:5", 4242, 5, "");
	assert_user("nohome", 55, 55, "");
}

static void what_is_not_there_or_broken_is_not_found(void **state)
{
	static const char *const unknown[] = {"ghost", "half", "huge", "minus", "x", "70000", "-1"};
	struct user_lookup user = {.uid = 1};

	(void)state;
	for (size_t i = 0; i < array_len(unknown); i++)
		assert_int_equal(find(unknown[i], &user), AGENT_USER_UNKNOWN);
	assert_int_equal(find("app:ghosts", &user), AGENT_GROUP_UNKNOWN);
	assert_int_equal(find("app:bad", &user), AGENT_GROUP_UNKNOWN);
	assert_int_equal(user.uid, 1);
}

static void root_and_numbers_need_no_files(void **state)
{
	struct user_lookup user;

	(void)state;
	assert_int_equal(user_lookup_find("root", "", "", &user), AGENT_USER_FOUND);
	assert_int_equal(user.uid, 0);
	assert_int_equal(user_lookup_find("9:8", "", "", &user), AGENT_USER_FOUND);
	assert_int_equal(user.uid, 9);
	assert_int_equal(user.gid, 8);
	assert_int_equal(user_lookup_find("app", "", "", &user), AGENT_USER_UNKNOWN);
}

static void groups_that_name_the_user_are_its_too_unless_a_group_is_named(void **state)
{
	static const char lines[] = "app:x:124:app\nother:x:9:apple,xapp\nteam:x:300:root,app\n"
				    "bad:x:x:app\nshort:x:5\nlast:x:301:app,";
	struct user_lookup user;

	(void)state;
	assert_int_equal(user_lookup_find("app", passwd, lines, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, 2);
	assert_int_equal(user.groups[0], 300);
	assert_int_equal(user.groups[1], 301);
	assert_int_equal(user_lookup_find("123", passwd, lines, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, 2);
	assert_int_equal(user_lookup_find("", passwd, lines, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, 1);
	assert_int_equal(user_lookup_find("app:team", passwd, lines, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, 0);
	assert_int_equal(user_lookup_find("4242", passwd, lines, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, 0);
}

static void more_groups_than_there_may_be_are_left_out(void **state)
{
	struct buf lines = BUF_INIT(1u << 16);
	auto_free char *text = NULL;
	struct user_lookup user;

	(void)state;
	for (int i = 0; i < 2 * AGENT_GROUPS_MAX; i++)
		buf_printf(&lines, "g%d:x:%d:app\n", i, 1000 + i);
	text = buf_take_str(&lines);
	assert_int_equal(user_lookup_find("app", passwd, text, &user), AGENT_USER_FOUND);
	assert_int_equal(user.group_count, AGENT_GROUPS_MAX);
	assert_int_equal(user.groups[AGENT_GROUPS_MAX - 1], 1000 + AGENT_GROUPS_MAX - 1);
}

static void a_home_that_is_too_long_is_cut_not_overrun(void **state)
{
	char line[3 * AGENT_PATH_MAX];
	struct user_lookup user;

	(void)state;
	memset(line, 'h', sizeof(line));
	memcpy(line, "app:x:1:1::/", 12);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(user_lookup_find("app", line, "", &user), AGENT_USER_FOUND);
	assert_int_equal(strlen(user.home), AGENT_PATH_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_or_number_is_found_with_its_group_and_home),
		cmocka_unit_test(groups_that_name_the_user_are_its_too_unless_a_group_is_named),
		cmocka_unit_test(more_groups_than_there_may_be_are_left_out),
		cmocka_unit_test(what_is_not_there_or_broken_is_not_found),
		cmocka_unit_test(root_and_numbers_need_no_files),
		cmocka_unit_test(a_home_that_is_too_long_is_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
