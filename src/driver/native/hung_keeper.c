/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/hung_keeper.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEEPER	"sandlot-keeper"
#define DELETED " (deleted)" /* behind the path of a program that was replaced */
#define END_MS	10000

/* What the keeper wrote into the file that it holds a lock of. Only root writes there. */
static int read_pid(const char *data_dir, pid_t *ret_pid, struct err *err)
{
	char path[PATH_MAX], text[16] = "";
	auto_fd int fd = -1;
	uint64_t pid;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/run/keeper.lock", data_dir);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return err_set(err, ERR_NOT_FOUND, "no keeper holds %s", path);
	len = read(fd, text, sizeof(text) - 1);
	text[len > 0 ? strcspn(text, "\n") : 0] = '\0';
	if (number_parse(text, 2, INT_MAX, &pid) < 0)
		return err_set(err, ERR_NOT_FOUND, "%s does not say whose it is", path);
	*ret_pid = (pid_t)pid;
	return 0;
}

static bool has_name(pid_t pid)
{
	char link[32], path[PATH_MAX];
	const char *name;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	name = strrchr(path, '/');
	return name && (strcmp(name + 1, KEEPER) == 0 || strcmp(name + 1, KEEPER DELETED) == 0);
}

/* Whether its first argument is the same directory. */
static bool has_directory(pid_t pid, const char *data_dir)
{
	char path[32], text[2 * PATH_MAX];
	struct stat its, ours;
	const char *dir;
	ssize_t len;
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	dir = text + strlen(text) + 1;
	return dir < text + len && stat(dir, &its) == 0 && stat(data_dir, &ours) == 0 &&
	       its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

static bool has_ended(int pidfd, int ms)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	return poll(&end, 1, ms) != 0;
}

int hung_keeper_end(const char *data_dir, struct err *err)
{
	auto_fd int pidfd = -1;
	pid_t pid;
	int r = read_pid(data_dir, &pid, err);

	if (r < 0)
		return r;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return err_sys(err, "look at the process %d", pid);
	/* What /proc says of the number is of this process if it lives after that was read. */
	if (!has_name(pid) || !has_directory(pid, data_dir) || has_ended(pidfd, 0))
		return err_set(err, ERR_NOT_FOUND, "process %d is no keeper of %s", pid, data_dir);
	log_error("the keeper (process %d) does not answer: it is killed, and its sandboxes end",
		pid);
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
		return err_sys(err, "kill the keeper (process %d)", pid);
	if (!has_ended(pidfd, END_MS))
		return err_set(err, ERR_TIMEOUT,
			"the keeper (process %d) was killed and does not end", pid);
	return 0;
}
