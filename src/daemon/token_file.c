/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/token_file.h"

#include "base/fail_point.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME   "token"
#define OTHERS 0077

static int make(int data_fd, const char *data_dir, char token[SECRET_TEXT_MAX], struct err *err)
{
	char line[SECRET_TEXT_MAX + 1];
	auto_fd int fd = -1;

	secret_make(SECRET_TOKEN_PREFIX, token);
	snprintf(line, sizeof(line), "%s\n", token);
	/* Written under another name first: a crash in between leaves no empty token. One that such a crash left is not
	 * written into, since it may be readable by others. */
	(void)unlinkat(data_fd, NAME ".new", 0);
	fd = openat(
		data_fd, NAME ".new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, line, strlen(line)) < 0 || fsync(fd) < 0 ||
		fail_point_check("daemon.token_written", NULL) < 0 ||
		renameat(data_fd, NAME ".new", data_fd, NAME) < 0)
		return err_sys(err, "write %s/" NAME, data_dir);
	explicit_bzero(line, sizeof(line));
	return 0;
}

/* The way out that is always right: another token is made, and nobody knows it. */
static int refuse(const char *data_dir, const char *what, struct err *err)
{
	char remedy[sizeof(err->remedy)];

	snprintf(remedy, sizeof(remedy), "rm %s/" NAME ": the next start makes a new token",
		data_dir);
	return err_explain(
		err, ERR_DENIED, "unsafe_token_file", remedy, "%s/" NAME " %s", data_dir, what);
}

static int check_file(int fd, const char *data_dir, uid_t owner, struct err *err)
{
	char remedy[sizeof(err->remedy)];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at %s/" NAME, data_dir);
	if (!S_ISREG(st.st_mode))
		return refuse(data_dir, "is not a regular file", err);
	if (st.st_uid != owner)
		return refuse(data_dir, "belongs to another user, who knows what is in it", err);
	if (!(st.st_mode & OTHERS))
		return 0;
	snprintf(remedy, sizeof(remedy),
		"rm %s/" NAME
		" for a new token; or, if nobody can have read it, chmod 600 %s/" NAME,
		data_dir, data_dir);
	return err_explain(err, ERR_DENIED, "unsafe_token_file", remedy,
		"%s/" NAME " can be used by others than its owner (mode %04o), who may know the "
		"administrator's token by now",
		data_dir, (unsigned)st.st_mode & 07777);
}

static int read_token(int fd, const char *data_dir, char token[SECRET_TEXT_MAX], struct err *err)
{
	char line[SECRET_TEXT_MAX];
	ssize_t n = read(fd, line, sizeof(line) - 1);

	if (n < 0)
		return err_sys(err, "read %s/" NAME, data_dir);
	line[n] = '\0';
	if (n > 0 && line[n - 1] == '\n')
		line[n - 1] = '\0';
	if (!secret_is_token(line))
		return refuse(
			data_dir, "does not hold a token, which is slt_ and 64 hex digits", err);
	snprintf(token, SECRET_TEXT_MAX, "%s", line);
	explicit_bzero(line, sizeof(line));
	return 0;
}

int token_file_open(int data_fd, const char *data_dir, uid_t owner, char ret_token[SECRET_TEXT_MAX],
	struct err *err)
{
	auto_fd int fd = openat(data_fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT)
		return make(data_fd, data_dir, ret_token, err);
	if (fd < 0 && errno == ELOOP)
		return refuse(data_dir, "is a symbolic link", err);
	if (fd < 0)
		return err_sys(err, "open %s/" NAME, data_dir);
	r = check_file(fd, data_dir, owner, err);
	return r < 0 ? r : read_token(fd, data_dir, ret_token, err);
}
