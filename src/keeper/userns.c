/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/userns.h"

#include "base/fd.h"
#include "keeper/limits.h"
#include "keeper/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Namespaces that may exist below a sandbox's own: those that a browser's sandbox is made of, in a number
 * that bounds what they cost the kernel, and none of the others. The filter says so too; this holds
 * whatever becomes of it.
 */
static const struct {
	const char *file, *most;
} nested[] = {
	{"/proc/sys/user/max_user_namespaces", "64"},
	{"/proc/sys/user/max_net_namespaces", "64"},
	{"/proc/sys/user/max_pid_namespaces", "512"},
	{"/proc/sys/user/max_mnt_namespaces", "0"},
	{"/proc/sys/user/max_ipc_namespaces", "0"},
	{"/proc/sys/user/max_uts_namespaces", "0"},
	{"/proc/sys/user/max_cgroup_namespaces", "0"},
	{"/proc/sys/user/max_time_namespaces", "0"},
};

static int limit_nested(void)
{
	for (size_t i = 0; i < array_len(nested); i++) {
		int r = fd_write_file(AT_FDCWD, nested[i].file, nested[i].most);

		if (r < 0)
			return r;
	}
	return 0;
}

/* In the child: becomes the range's owner while keeping its capabilities, and makes the namespace. */
static int enter(void *arg)
{
	uint32_t base = *(uint32_t *)arg;
	struct err ignored;
	int r = limits_set(&ignored);

	if (r < 0)
		return r;
	/* Without this bit a change of euid from 0 would clear the effective capabilities. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
		syscall(SYS_setresgid, -1, base, -1) < 0 ||
		syscall(SYS_setresuid, -1, base, -1) < 0 || unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return limit_nested();
}

static int write_maps(pid_t child, void *arg, struct err *err)
{
	static const char *const files[] = {"uid_map", "gid_map"};
	char map[48], path[48];

	snprintf(map, sizeof(map), "0 %u %u", *(uint32_t *)arg, KEEPER_UID_COUNT);
	for (size_t i = 0; i < array_len(files); i++) {
		int r;

		snprintf(path, sizeof(path), "/proc/%d/%s", child, files[i]);
		r = fd_write_file(AT_FDCWD, path, map);
		if (r < 0)
			return err_from(err, r, "write %s to %s", map, path);
	}
	return 0;
}

static int make(uint32_t slot, int *ret_fd, struct err *err)
{
	static const struct namespace_job job = {
		.file = "user", .enter = enter, .adjust = write_maps};
	uint32_t base = userns_base(slot);

	return namespace_make(&job, &base, ret_fd, err);
}

int userns_get(struct userns_cache *cache, uint32_t slot, int *ret_fd, struct err *err)
{
	int fd, r;

	if (slot >= USERNS_KEPT)
		return make(slot, ret_fd, err);
	if (!cache->fds[slot]) {
		r = make(slot, &fd, err);
		if (r < 0)
			return r;
		cache->fds[slot] = fd + 1;
	}
	fd = fcntl(cache->fds[slot] - 1, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, "copy a descriptor");
	*ret_fd = fd;
	return 0;
}
