/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "daemon/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/sandlot-token-XXXXXX";
static int dir_fd;
static struct err err;

static void put(const char *text, mode_t mode)
{
	auto_fd int fd = openat(dir_fd, "token", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void refused(const char *why)
{
	char token[SECRET_TEXT_MAX] = "untouched", path[64];

	snprintf(path, sizeof(path), "%s/token", dir);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid(), token, &err), -EPERM);
	assert_string_equal(token, "untouched");
	assert_non_null(strstr(err.message, path));
	assert_non_null(strstr(err.message, why));
	assert_non_null(strstr(err.remedy, path));
}

static void a_token_is_made_once_and_is_the_owners_alone(void **state)
{
	char token[SECRET_TEXT_MAX], again[SECRET_TEXT_MAX];
	struct stat st;

	(void)state;
	/* What an earlier start left of it, for all to read. */
	assert_int_equal(mknodat(dir_fd, "token.new", S_IFREG | 0666, 0), 0);
	assert_int_equal(fchmodat(dir_fd, "token.new", 0666, 0), 0);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid(), token, &err), 0);
	assert_true(secret_is_token(token));
	assert_int_equal(fstatat(dir_fd, "token", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid(), again, &err), 0);
	assert_string_equal(token, again);
}

static void only_what_has_the_form_of_a_token_is_one(void **state)
{
	static const char good[] =
		"slt_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	char token[SECRET_TEXT_MAX], text[512];

	(void)state;
	put(good, 0600);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid(), token, &err), 0);
	assert_string_equal(token, good);
	put("", 0600);
	refused("does not hold a token");
	put("hunter2\n", 0600);
	refused("does not hold a token");
	assert_null(strstr(err.message, "hunter2"));
	put("slt_00112233\n", 0600);
	refused("does not hold a token");
	snprintf(text, sizeof(text), "%s\n%s\n", good, good);
	put(text, 0600);
	refused("does not hold a token");
	snprintf(text, sizeof(text), "%s00\n", good);
	put(text, 0600);
	refused("does not hold a token");
	snprintf(text, sizeof(text), "%0500d", 0);
	put(text, 0600);
	refused("does not hold a token");
}

static void a_token_that_others_can_read_is_taken_for_known(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0660, 0644, 0620, 0602};
	char token[SECRET_TEXT_MAX], chmod_command[96];

	(void)state;
	unlinkat(dir_fd, "token", 0);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid(), token, &err), 0);
	snprintf(chmod_command, sizeof(chmod_command), "chmod 600 %s/token", dir);
	for (size_t i = 0; i < array_len(modes); i++) {
		assert_int_equal(fchmodat(dir_fd, "token", modes[i], 0), 0);
		refused("others");
		assert_non_null(strstr(err.remedy, chmod_command));
	}
	assert_int_equal(fchmodat(dir_fd, "token", 0600, 0), 0);
	assert_int_equal(token_file_open(dir_fd, dir, geteuid() + 1, token, &err), -EPERM);
	assert_non_null(strstr(err.message, "another user"));
}

static void what_is_not_a_file_is_neither_followed_nor_waited_for(void **state)
{
	(void)state;
	assert_int_equal(renameat(dir_fd, "token", dir_fd, "real"), 0);
	assert_int_equal(symlinkat("real", dir_fd, "token"), 0);
	refused("symbolic link");
	assert_int_equal(unlinkat(dir_fd, "token", 0), 0);
	assert_int_equal(mkfifoat(dir_fd, "token", 0600), 0);
	refused("not a regular file");
}

static int set_up(void **state)
{
	(void)state;
	umask(022);
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlinkat(dir_fd, "token", 0);
	unlinkat(dir_fd, "real", 0);
	close(dir_fd);
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_made_once_and_is_the_owners_alone),
		cmocka_unit_test(only_what_has_the_form_of_a_token_is_one),
		cmocka_unit_test(a_token_that_others_can_read_is_taken_for_known),
		cmocka_unit_test(what_is_not_a_file_is_neither_followed_nor_waited_for),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
