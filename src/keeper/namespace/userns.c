/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/userns.h"

#include "base/fd.h"
#include "base/subids.h"
#include "keeper/namespace/namespace.h"
#include "keeper/process/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAP_MAX 4096
#define NOBODY	65534u

/* How a map begins when ids are what they are on the host. */
static const char whole_map[] = "0 0 4294967295";

/* Ids from 1 on without a gap that a map has. Each line is "inside outside count". */
static uint64_t count_ids(const char *map)
{
	uint64_t next = 0;
	unsigned inside, outside, count;
	int len;

	while (sscanf(map, "%u %u %u%n", &inside, &outside, &count, &len) == 3 && inside == next) {
		next += count;
		map += len;
	}
	return next > 0 ? next - 1 : 0;
}

/* Without the spaces that the kernel aligns its columns with. */
static bool is_whole(const char *map)
{
	unsigned inside, outside, count;
	char plain[48];

	if (sscanf(map, "%u %u %u", &inside, &outside, &count) != 3)
		return false;
	snprintf(plain, sizeof(plain), "%u %u %u", inside, outside, count);
	return strcmp(plain, whole_map) == 0;
}

int userns_cut_ranges(
	const char *uid_map, const char *gid_map, struct userns_ranges *ret_ranges, struct err *err)
{
	uint64_t uids = count_ids(uid_map), gids = count_ids(gid_map);
	uint64_t count = (uids < gids ? uids : gids) / SUBIDS_SANDBOX;

	if (is_whole(uid_map) && is_whole(gid_map)) {
		*ret_ranges = (struct userns_ranges){.first = KEEPER_UID_FIRST,
			.width = KEEPER_UID_COUNT,
			.count = KEEPER_SLOT_COUNT,
			.is_host = true};
		return 0;
	}
	if (count == 0)
		return err_set(err, ERR_UNAVAILABLE,
			"this user namespace has %llu uids and %llu gids for sandboxes, and a "
			"sandbox needs %u",
			(unsigned long long)uids, (unsigned long long)gids, SUBIDS_SANDBOX);
	*ret_ranges = (struct userns_ranges){.first = 1,
		.width = SUBIDS_SANDBOX,
		.count = (uint32_t)(count < KEEPER_SLOT_COUNT ? count : KEEPER_SLOT_COUNT)};
	return 0;
}

int userns_survey(struct userns_ranges *ret_ranges, struct err *err)
{
	char uid_map[MAP_MAX], gid_map[MAP_MAX];

	if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", uid_map, sizeof(uid_map)) < 0 ||
		fd_read_file(AT_FDCWD, "/proc/self/gid_map", gid_map, sizeof(gid_map)) < 0)
		return err_sys(err, "read our own maps of ids");
	return userns_cut_ranges(uid_map, gid_map, ret_ranges, err);
}

/* What a namespace is made from. */
struct order {
	uint32_t base, width;
	uint64_t pids;
};

static int limit_processes(uint64_t pids)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit) < 0)
		return -errno;
	limit.rlim_cur = pids < limit.rlim_max ? pids : limit.rlim_max;
	return setrlimit(RLIMIT_NPROC, &limit) < 0 ? -errno : 0;
}

/*
 * Namespaces that may exist below a sandbox's own: those that a browser's sandbox needs, in a
 * number that bounds what they cost the kernel, and none of the others. The seccomp filter says so
 * too; this holds without the filter.
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

/* The child has the keeper's descriptors, and their numbers may be beyond what a sandbox may open. */
static int allow_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

/* In the child: becomes the range's owner while keeping its capabilities, and makes the namespace. */
static int enter(void *arg)
{
	const struct order *order = arg;
	uint32_t base = order->base;
	struct err ignored;
	int r = limits_set(&ignored);

	if (r == 0 && order->pids)
		r = limit_processes(order->pids);
	if (r == 0)
		r = allow_descriptors();
	if (r < 0)
		return r;
	/* Without this bit a change of euid from 0 would clear the effective capabilities. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
		syscall(SYS_setresgid, -1, base, -1) < 0 ||
		syscall(SYS_setresuid, -1, base, -1) < 0 || unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return limit_nested();
}

static int write_map(pid_t child, const char *map, struct err *err)
{
	static const char *const files[] = {"uid_map", "gid_map"};
	char path[48];

	for (size_t i = 0; i < array_len(files); i++) {
		int r;

		snprintf(path, sizeof(path), "/proc/%d/%s", child, files[i]);
		r = fd_write_file(AT_FDCWD, path, map);
		if (r < 0)
			return err_from(err, r, "write %s to %s", map, path);
	}
	return 0;
}

static int write_maps(pid_t child, void *arg, struct err *err)
{
	const struct order *order = arg;
	char map[64];

	if (order->width > NOBODY)
		snprintf(map, sizeof(map), "0 %u %u", order->base, order->width);
	else
		snprintf(map, sizeof(map), "0 %u %u\n%u %u 1", order->base, order->width - 1,
			NOBODY, order->base + order->width - 1);
	return write_map(child, map, err);
}

/* --- maps of mounts --- */

struct range_map {
	uint32_t from, to;
};

static int enter_map(void *arg)
{
	(void)arg;
	return unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
}

static int write_range_map(pid_t child, void *arg, struct err *err)
{
	const struct range_map *range = arg;
	char map[80];

	snprintf(map, sizeof(map), "0 0 1\n%u %u %u", range->from, range->to, KEEPER_UID_COUNT);
	return write_map(child, map, err);
}

int userns_map_range(uint32_t from_base, uint32_t to_base, int *ret_fd, struct err *err)
{
	static const struct namespace_job process = {
		.file = "user", .enter = enter_map, .adjust = write_range_map};
	struct range_map range = {from_base, to_base};

	return namespace_make(&process, &range, ret_fd, err);
}

/* --- namespaces of ranges --- */

static int make(const struct userns_ranges *ranges, uint32_t slot, uint64_t pids, int *ret_fd,
	struct err *err)
{
	static const struct namespace_job process = {
		.file = "user", .enter = enter, .adjust = write_maps};
	struct order order = {
		.base = userns_base(ranges, slot), .width = ranges->width, .pids = pids};

	return namespace_make(&process, &order, ret_fd, err);
}

/* The daemon takes the lowest that is free, so one beyond the last means that all are taken. */
static int check_slot(const struct userns_ranges *ranges, uint32_t slot, struct err *err)
{
	if (slot < ranges->count)
		return 0;
	return err_explain(err, ERR_UNAVAILABLE, "no_uid_range",
		"purge workspaces that nobody needs, or have more ids lent to you: sudo usermod "
		"--add-subuids FIRST-LAST --add-subgids FIRST-LAST USER",
		"each sandbox and each kept workspace has a range of uids, and all %u are taken",
		ranges->count);
}

/* Makes the namespace of a range that is kept, if it has not been made. */
static int keep(struct userns_cache *cache, uint32_t slot, struct err *err)
{
	int fd, r;

	if (cache->fds[slot])
		return 0;
	r = make(&cache->ranges, slot, 0, &fd, err);
	if (r == 0)
		cache->fds[slot] = fd + 1;
	return r;
}

void userns_forget(struct userns_cache *cache, uint32_t slot)
{
	if (slot >= USERNS_KEPT || !cache->fds[slot])
		return;
	close(cache->fds[slot] - 1);
	cache->fds[slot] = 0;
}

int userns_get(
	struct userns_cache *cache, uint32_t slot, uint64_t pids, int *ret_fd, struct err *err)
{
	int fd, r = check_slot(&cache->ranges, slot, err);

	if (r < 0)
		return r;
	if (slot >= USERNS_KEPT || pids)
		return make(&cache->ranges, slot, pids, ret_fd, err);
	r = keep(cache, slot, err);
	if (r < 0)
		return r;
	fd = fcntl(cache->fds[slot] - 1, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, "copy a descriptor");
	*ret_fd = fd;
	return 0;
}
