/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/userns.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: becomes the range's owner while keeping its capabilities, makes the namespace, and
 * waits to be looked at. */
static void hold_namespace(uint32_t base, int sock)
{
	char done;

	/* Without this bit a change of euid from 0 would clear the effective capabilities. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
		syscall(SYS_setresgid, -1, base, -1) < 0 || syscall(SYS_setresuid, -1, base, -1) < 0 ||
		unshare(CLONE_NEWUSER) < 0)
		_exit(errno);
	if (write(sock, "", 1) != 1 || read(sock, &done, 1) < 0)
		_exit(EIO);
	_exit(0);
}

static int write_maps(pid_t pid, uint32_t base, int *ret_fd, struct err *err)
{
	char map[48], path[48];
	int r;

	snprintf(map, sizeof(map), "0 %u %u", base, KEEPER_UID_COUNT);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	r = fd_write_file(AT_FDCWD, path, map);
	if (r < 0)
		return err_from(err, r, "write the uid map %s", map);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	r = fd_write_file(AT_FDCWD, path, map);
	if (r < 0)
		return err_from(err, r, "write the gid map %s", map);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open the new user namespace") : 0;
}

int userns_make(uint32_t slot, int *ret_fd, struct err *err)
{
	uint32_t base = userns_base(slot);
	auto_fd int ours = -1, theirs = -1;
	int pair[2], status = 0, r;
	char ready;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0)
		hold_namespace(base, theirs);
	fd_close(take_fd(&theirs));
	if (read(ours, &ready, 1) == 1)
		r = write_maps(pid, base, ret_fd, err);
	else
		r = -EIO;
	fd_close(take_fd(&ours));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == -EIO && WIFEXITED(status)) {
		errno = WEXITSTATUS(status);
		return err_sys(err, "make a user namespace");
	}
	return r;
}
