/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/local_daemon.h"

#include "base/data_dir.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RUN	     "run"
#define SOCKET	     "api.sock"
#define WRITE_OTHERS (S_IWGRP | S_IWOTH)

char *local_daemon_socket(const char *data_dir)
{
	return mem_printf("%s/" RUN "/" SOCKET, data_dir);
}

/* Whether somebody listens. Nothing is sent. */
static bool is_served(const char *data_dir)
{
	auto_free char *path = local_daemon_socket(data_dir);
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

char *local_daemon_data_dir(void)
{
	const char *named = getenv("SANDLOT_DATA_DIR");
	auto_free char *own = geteuid() == 0 ? NULL : data_dir_of_user();
	struct stat st;

	if (named && named[0])
		return mem_strdup(named);
	if (own && (is_served(own) || stat(DATA_DIR_OF_ROOT, &st) < 0))
		return take_ptr(&own);
	return mem_strdup(DATA_DIR_OF_ROOT);
}

/* The daemon's program, by a path that works: the one beside us, which need not be in PATH. */
static void find_program(char ret_program[PATH_MAX])
{
	static const char name[] = "sandlotd";
	ssize_t n = readlink("/proc/self/exe", ret_program, PATH_MAX - sizeof(name));
	char *slash = NULL;

	if (n > 0) {
		ret_program[n] = '\0';
		slash = strrchr(ret_program, '/');
	}
	if (slash)
		strcpy(slash + 1, name);
	if (!slash || access(ret_program, X_OK) < 0)
		strcpy(ret_program, name);
}

int local_daemon_explain(const char *data_dir, struct err *err)
{
	bool is_default = strcmp(data_dir, DATA_DIR_OF_ROOT) == 0;
	char remedy[sizeof(err->remedy)], program[PATH_MAX];

	find_program(program);
	snprintf(remedy, sizeof(remedy),
		"start it with \"%s --data-dir %s\"; one elsewhere is named by --url or "
		"SANDLOT_URL",
		program, data_dir);
	return err_explain(err, ERR_UNAVAILABLE, "unreachable",
		is_default ? LOCAL_DAEMON_START : remedy,
		"the daemon of %s is not running: nobody listens on %s/" RUN "/" SOCKET, data_dir,
		data_dir);
}

/* For what cannot be looked at. */
static int explain_errno(const char *data_dir, struct err *err)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return local_daemon_explain(data_dir, err);
	if (errno == EACCES)
		return err_explain(err, ERR_DENIED, "unreachable",
			"sudo sandlot ...; or set SANDLOT_URL (http://127.0.0.1:9090) and "
			"SANDLOT_TOKEN",
			"the socket of the daemon, %s/" RUN "/" SOCKET ", is not for this user",
			data_dir);
	return err_sys(err, "look at %s/" RUN "/" SOCKET, data_dir);
}

static int check_dir(int fd, const char *path, uid_t owner, struct stat *ret_stat, struct err *err)
{
	if (fstat(fd, ret_stat) < 0)
		return err_sys(err, "look at %s", path);
	if (ret_stat->st_uid != 0 && ret_stat->st_uid != owner)
		return err_explain(err, ERR_DENIED, "untrusted_socket", NULL,
			"no token is sent: %s belongs to uid %u, and the data directory to uid %u",
			path, ret_stat->st_uid, owner);
	if (ret_stat->st_mode & WRITE_OTHERS)
		return err_explain(err, ERR_DENIED, "untrusted_socket",
			"chmod go-w that directory, and start the daemon again",
			"no token is sent: %s can be written by others than its owner, who may "
			"have "
			"put a socket there",
			path);
	return 0;
}

int local_daemon_check(const char *data_dir, struct err *err)
{
	auto_fd int data_fd = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *run = mem_printf("%s/" RUN, data_dir);
	auto_fd int run_fd = -1;
	struct stat data, st;
	int r;

	if (data_fd < 0 || fstat(data_fd, &data) < 0)
		return explain_errno(data_dir, err);
	r = check_dir(data_fd, data_dir, data.st_uid, &st, err);
	if (r < 0)
		return r;
	run_fd = openat(data_fd, RUN, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run_fd < 0)
		return explain_errno(data_dir, err);
	r = check_dir(run_fd, run, data.st_uid, &st, err);
	if (r < 0)
		return r;
	if (fstatat(run_fd, SOCKET, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return explain_errno(data_dir, err);
	if (!S_ISSOCK(st.st_mode))
		return err_explain(err, ERR_DENIED, "untrusted_socket", NULL,
			"no token is sent: %s/" SOCKET " is not a socket", run);
	return faccessat(run_fd, SOCKET, W_OK, AT_EACCESS) < 0 ? explain_errno(data_dir, err) : 0;
}
