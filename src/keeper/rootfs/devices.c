/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/devices.h"

#include "base/fd.h"
#include "keeper/mount/mount_area.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = {
	{"null", 1, 3},
	{"zero", 1, 5},
	{"full", 1, 7},
	{"random", 1, 8},
	{"urandom", 1, 9},
	{"tty", 5, 0},
};

static const struct {
	const char *name;
	const char *target;
} dev_links[] = {
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
};

/* Root of a user namespace may not make device nodes, but may show those of the host. */
static int bind_device(int dev, const char *name, struct err *err)
{
	auto_fd int file = openat(dev, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	auto_fd int place = mounts_open_beneath(dev, name, O_PATH);
	auto_fd int mount = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/dev/%s", name);
	r = mounts_clone(AT_FDCWD, path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, -1, &mount, err);
	if (r < 0)
		return r;
	if (file < 0 || place < 0 || mounts_attach(mount, place) < 0)
		return err_sys(err, "show device node %s", name);
	return 0;
}

static int make_device(int dev, const char *name, unsigned major, unsigned minor, struct err *err)
{
	if (mknodat(dev, name, S_IFCHR | 0666, makedev(major, minor)) < 0)
		return errno == EPERM ? bind_device(dev, name, err)
				      : err_sys(err, "make device node %s", name);
	return fchmodat(dev, name, 0666, 0) < 0 ? err_sys(err, "open up device node %s", name) : 0;
}

int devices_make(int mount_area_fd, int *ret_fd, struct err *err)
{
	auto_fd int fs = mounts_fsopen("tmpfs");
	auto_fd int dev = -1;
	int r;

	if (fs < 0 || mounts_set_string(fs, "size", "65536") < 0 ||
		mounts_set_string(fs, "nr_inodes", "64") < 0 ||
		mounts_set_string(fs, "mode", "0755") < 0)
		return err_sys(err, "configure tmpfs for /dev");
	dev = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (dev < 0)
		return err_sys(err, "make tmpfs for /dev");
	/* First, because nothing can be mounted on what is mounted nowhere. */
	r = mount_area_put_mount(mount_area_fd, "dev", dev, err);
	for (size_t i = 0; i < array_len(devices) && r == 0; i++)
		r = make_device(dev, devices[i].name, devices[i].major, devices[i].minor, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < array_len(dev_links); i++) {
		if (symlinkat(dev_links[i].target, dev, dev_links[i].name) < 0)
			return err_sys(err, "make /dev/%s", dev_links[i].name);
	}
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 01777) < 0)
		return err_sys(err, "make directories of /dev");
	*ret_fd = take_fd(&dev);
	return 0;
}
