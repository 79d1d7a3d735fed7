/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/virtual_sys.h"

#include "base/fd.h"
#include "keeper/mount/mounts.h"
#include "keeper/rootfs/cpuinfo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROC_FILE_NAME_MAX (16 + KEEPER_ID_LEN)
#define ATTRS		   (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static const char *const directories[] = {"sys", "sys/devices", "sys/devices/system",
	"sys/devices/system/cpu", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/unified"};

static const char *const proc_file_names[VIRTUAL_SYS_PROC_FILES] = {"meminfo", "stat"};

static int make_dir(int fd, const char *path, struct err *err)
{
	if (mkdirat(fd, path, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", path);
	return 0;
}

static int make_dirs(int fd, const struct cgroup_tree *cgroups, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < array_len(directories) && r == 0; i++)
		r = make_dir(fd, directories[i], err);
	for (int c = 0; c < CGROUP_COUNT && r == 0; c++) {
		char path[64];

		snprintf(path, sizeof(path), "sys/fs/cgroup/%s", cgroup_tree_controller(c));
		if (cgroups->v1_fd[c] >= 0)
			r = make_dir(fd, path, err);
	}
	return r;
}

static FILE *open_file(int fd, const char *path)
{
	auto_fd int file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	FILE *stream = file < 0 ? NULL : fdopen(file, "w");

	if (stream)
		take_fd(&file);
	return stream;
}

static int make_file(int fd, const char *path, const char *text, struct err *err)
{
	FILE *file = open_file(fd, path);
	bool is_bad = !file || fputs(text, file) < 0;

	if ((file && fclose(file) != 0) || is_bad)
		return err_sys(err, "write %s", path);
	return 0;
}

/*
 * `possible` stays the host's: programs size tables by it that they index with the number of the
 * processor they are on, and a sandbox may be on any.
 */
static int make_cpu_lists(int fd, unsigned cpu_count, struct err *err)
{
	static const char possible[] = "sys/devices/system/cpu/possible";
	char text[256];
	int r;

	if (fd_read_file(AT_FDCWD, "/sys/devices/system/cpu/possible", text, sizeof(text)) > 0) {
		r = make_file(fd, possible, text, err);
		if (r < 0)
			return r;
	}
	snprintf(text, sizeof(text), cpu_count > 1 ? "0-%u\n" : "%u\n", cpu_count - 1);
	r = make_file(fd, "sys/devices/system/cpu/online", text, err);
	return r < 0 ? r : make_file(fd, "sys/devices/system/cpu/present", text, err);
}

static int make_cpuinfo(int fd, unsigned cpu_count, struct err *err)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	FILE *out = open_file(fd, "cpuinfo");
	int r = in && out ? cpuinfo_cut(in, out, cpu_count) : -errno;

	if (in)
		fclose(in);
	if (out && fclose(out) != 0 && r == 0)
		r = -errno;
	return r < 0 ? err_from(err, r, "copy /proc/cpuinfo") : 0;
}

int virtual_sys_prepare(
	int mount_area_fd, const struct cgroup_tree *cgroups, unsigned cpu_count, struct err *err)
{
	auto_fd int fd = -1;
	char name[32];
	int r;

	/* Its last file shows that it is complete. */
	snprintf(name, sizeof(name), "machine-%u/cpuinfo", cpu_count);
	if (faccessat(mount_area_fd, name, F_OK, 0) == 0)
		return 0;
	*strchr(name, '/') = '\0';
	r = make_dir(mount_area_fd, name, err);
	if (r < 0)
		return r;
	fd = openat(mount_area_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open directory %s", name);
	if ((r = make_dirs(fd, cgroups, err)) < 0 || (r = make_cpu_lists(fd, cpu_count, err)) < 0)
		return r;
	return make_cpuinfo(fd, cpu_count, err);
}

static void proc_file_name(int file, const char *group, char name[PROC_FILE_NAME_MAX])
{
	snprintf(name, PROC_FILE_NAME_MAX, "%s-%s", proc_file_names[file], group);
}

/*
 * Named after the group: what an interrupted build left is in the way only of the next build of
 * that group.
 */
static int clone_proc_file(struct virtual_sys *view, int mount_area_fd, int file, struct err *err)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	char name[PROC_FILE_NAME_MAX];
	int fd;

	proc_file_name(file, view->group, name);
	fd = openat(mount_area_fd, name, flags, 0444);
	if (fd < 0 && errno == EEXIST && unlinkat(mount_area_fd, name, 0) == 0)
		fd = openat(mount_area_fd, name, flags, 0444);
	/* The owner of a file may hold a lease on it. */
	if (fd < 0 || fchown(fd, view->base_uid, view->base_uid) < 0)
		return err_sys(err, "make /proc/%s", proc_file_names[file]);
	view->proc_file_fds[file] = fd;
	return mounts_clone(mount_area_fd, name, ATTRS, -1, &view->proc_files[file], err);
}

static int clone_groups(struct virtual_sys *view, const struct cgroup_tree *cgroups, const char *id,
	struct err *err)
{
	int r = 0;

	view->unified = -1;
	if (cgroup_tree_is_real(cgroups))
		r = mounts_clone(cgroups->unified_fd, id, ATTRS, -1, &view->unified, err);
	for (int c = 0; c < CGROUP_COUNT && r == 0; c++) {
		view->v1[c] = -1;
		if (cgroups->v1_fd[c] >= 0)
			r = mounts_clone(cgroups->v1_fd[c], id, ATTRS, -1, &view->v1[c], err);
	}
	return r;
}

int virtual_sys_clone(struct virtual_sys *view, int mount_area_fd,
	const struct cgroup_tree *cgroups, const char *group, unsigned cpu_count, uint32_t base_uid,
	struct err *err)
{
	char sys[32], cpuinfo[32];
	int r;

	view->group = group;
	view->base_uid = base_uid;
	snprintf(sys, sizeof(sys), "machine-%u/sys", cpu_count);
	snprintf(cpuinfo, sizeof(cpuinfo), "machine-%u/cpuinfo", cpu_count);
	if ((r = mounts_clone(mount_area_fd, sys, ATTRS, -1, &view->sys, err)) < 0 ||
		(r = mounts_clone(mount_area_fd, cpuinfo, ATTRS, -1, &view->cpuinfo, err)) < 0 ||
		(r = clone_groups(view, cgroups, group, err)) < 0)
		return r;
	for (int i = 0; i < VIRTUAL_SYS_PROC_FILES && r == 0; i++)
		r = clone_proc_file(view, mount_area_fd, i, err);
	return r;
}

static int attach_groups(const struct virtual_sys *view, struct err *err)
{
	bool is_hybrid = false;
	char place[64];

	for (int c = 0; c < CGROUP_COUNT; c++) {
		int r;

		if (view->v1[c] < 0)
			continue;
		is_hybrid = true;
		snprintf(place, sizeof(place), "sys/fs/cgroup/%s", cgroup_tree_controller(c));
		r = mounts_place(view->v1[c], place, err);
		if (r < 0)
			return r;
	}
	if (view->unified < 0)
		return 0;
	return mounts_place(
		view->unified, is_hybrid ? "sys/fs/cgroup/unified" : "sys/fs/cgroup", err);
}

static int attach_proc_file(const struct virtual_sys *view, int file, struct err *err)
{
	char place[32];

	snprintf(place, sizeof(place), "proc/%s", proc_file_names[file]);
	return mounts_place(view->proc_files[file], place, err);
}

int virtual_sys_attach(const struct virtual_sys *view, struct err *err)
{
	int r;

	if ((r = mounts_place(view->sys, "sys", err)) < 0 || (r = attach_groups(view, err)) < 0 ||
		(r = mounts_place(view->cpuinfo, "proc/cpuinfo", err)) < 0)
		return r;
	for (int i = 0; i < VIRTUAL_SYS_PROC_FILES && r == 0; i++)
		r = attach_proc_file(view, i, err);
	return r;
}

void virtual_sys_discard(int mount_area_fd, const char *group)
{
	for (int i = 0; i < VIRTUAL_SYS_PROC_FILES; i++) {
		char name[PROC_FILE_NAME_MAX];

		proc_file_name(i, group, name);
		(void)!unlinkat(mount_area_fd, name, 0);
	}
}
