/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/proc_mask.h"

#include "base/fd.h"
#include "keeper/mount/mount_area.h"
#include "keeper/mount/mounts.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Files of /proc that show the host and, by its devices and counters, other sandboxes. Only names
 * that every user may read are masked: this procfs belongs to the host's root, who is not mapped
 * inside, so a file with mode 0400 is closed already. loadavg and uptime stay: sysinfo(2) shows the
 * same.
 */
static const char *const host_files[] = {"acpi", "allocinfo", "asound", "buddyinfo", "bus",
	"cgroups", "cmdline", "config.gz", "diskstats", "driver", "fs", "interrupts", "iomem",
	"ioports", "irq", "kallsyms", "kcore", "key-users", "keys", "kpagecgroup", "kpagecount",
	"kpageflags", "latency_stats", "mdstat", "modules", "mtrr", "pagetypeinfo", "partitions",
	"pressure", "sched_debug", "schedstat", "scsi", "slabinfo", "softirqs", "swaps",
	"timer_list", "timer_stats", "vmallocinfo", "vmstat", "zoneinfo"};

static_assert(array_len(host_files) <= PROC_MASKS_MAX, "room for all names");

/*
 * Files that programs read for the names in them: Java which controllers there are, vmstat its own.
 */
static const char *const copied[] = {"cgroups", "vmstat"};

static enum proc_cover cover_of(const char *name, const struct stat *st)
{
	for (size_t i = 0; i < array_len(copied); i++) {
		if (strcmp(copied[i], name) == 0)
			return COVER_COPY;
	}
	return S_ISDIR(st->st_mode) ? COVER_DIR : COVER_FILE;
}

/* "cpu 1 24 1", where the third is how many groups there are on the host; and "nr_free_pages 5678". */
static void copy_line(const char *name, const char *line, FILE *out)
{
	unsigned hierarchy, is_enabled;
	char word[64];

	if (strcmp(name, "vmstat") == 0 && sscanf(line, "%63s", word) == 1)
		fprintf(out, "%s 0\n", word);
	else if (sscanf(line, "%63s %u %*u %u", word, &hierarchy, &is_enabled) == 3)
		fprintf(out, "%s\t%u\t1\t%u\n", word, hierarchy, is_enabled);
	else if (line[0] == '#')
		fputs(line, out);
}

int proc_mask_copy(const char *name, FILE *in, FILE *out)
{
	char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, in) > 0)
		copy_line(name, line, out);
	free(line);
	return ferror(in) || ferror(out) ? -EIO : 0;
}

#define NEW_FILE (O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)

/* Not the null device: a read-only mount does not keep a device from being written to. */
static int make_empty(int mount_area_fd, struct err *err)
{
	auto_fd int fd = openat(mount_area_fd, "empty", NEW_FILE, 0444);

	return fd < 0 ? err_sys(err, "make an empty file") : 0;
}

static int make_copy(int mount_area_fd, const char *name, const char *path, struct err *err)
{
	auto_fd int fd = openat(mount_area_fd, name, NEW_FILE, 0444);
	FILE *in = fopen(path, "re"), *out = fd < 0 ? NULL : fdopen(fd, "w");
	int r = in && out ? proc_mask_copy(name, in, out) : -errno;

	if (out)
		take_fd(&fd);
	if (out && fclose(out) != 0 && r == 0)
		r = -errno;
	if (in)
		fclose(in);
	return r < 0 ? err_from(err, r, "copy %s", path) : 0;
}

/*
 * Attaches the mount area a second time, read-only. A clone of what is there has the attributes of
 * a mask already.
 */
static int open_source(int mount_area_fd, int *ret_fd, struct err *err)
{
	const unsigned attrs =
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV;
	auto_fd int mount = mounts_open_tree(mount_area_fd, "", 0);
	int r;

	if (mount < 0 || mounts_set_attr(mount, attrs, -1, 0) < 0)
		return err_sys(err, "clone the mount area");
	r = mount_area_put_mount(mount_area_fd, "masks", mount, err);
	if (r < 0)
		return r;
	*ret_fd = openat(mount_area_fd, "masks", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open the masks") : 0;
}

int proc_mask_find(struct proc_masks *masks, int mount_area_fd, struct err *err)
{
	int r = make_empty(mount_area_fd, err);

	if (r == 0)
		r = open_source(mount_area_fd, &masks->source_fd, err);

	masks->count = 0;
	for (size_t i = 0; i < array_len(host_files) && r == 0; i++) {
		enum proc_cover cover;
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s", host_files[i]);
		if (lstat(path, &st) < 0 || !(st.st_mode & 0004))
			continue;
		cover = cover_of(host_files[i], &st);
		if (cover == COVER_COPY)
			r = make_copy(mount_area_fd, host_files[i], path, err);
		masks->names[masks->count] = host_files[i];
		masks->covers[masks->count++] = cover;
	}
	return r;
}

static const char *source_of(const struct proc_masks *masks, size_t i)
{
	switch (masks->covers[i]) {
	case COVER_FILE:
		return "empty";
	case COVER_DIR:
		return "blank";
	default:
		return masks->names[i];
	}
}

int proc_mask_clone(
	const struct proc_masks *masks, int ret_fds[static PROC_MASKS_MAX], struct err *err)
{
	for (size_t i = 0; i < masks->count; i++) {
		ret_fds[i] = mounts_open_tree(masks->source_fd, source_of(masks, i), 0);
		if (ret_fds[i] < 0)
			return err_sys(err, "clone the mask of /proc/%s", masks->names[i]);
	}
	return 0;
}

/* The procfs is the sandbox's, but new: the names in it are the kernel's. */
static int open_proc(struct err *err)
{
	int fd = mounts_open_beneath(AT_FDCWD, "proc", O_PATH | O_DIRECTORY);

	return fd < 0 ? err_sys(err, "open /proc") : fd;
}

static int place(int proc_fd, const char *name, int mount_fd, struct err *err)
{
	return mounts_attach_at(mount_fd, proc_fd, name) < 0 ? err_sys(err, "mask /proc/%s", name)
							     : 0;
}

int proc_mask_place(
	const struct proc_masks *masks, const int fds[static PROC_MASKS_MAX], struct err *err)
{
	auto_fd int proc = open_proc(err);
	int r = proc < 0 ? proc : 0;

	for (size_t i = 0; i < masks->count && r == 0; i++)
		r = place(proc, masks->names[i], fds[i], err);
	return r;
}

/* Files of /proc that the sandbox has its own of (virtual_sys.h). */
static const char *const own_files[] = {"cpuinfo", "meminfo", "stat"};

static_assert(PROC_MASKS_MAX + array_len(own_files) == PROC_COVERS_MAX, "room for all covers");

static size_t count_covers(const struct proc_masks *masks)
{
	return masks->count + array_len(own_files);
}

/* The name of a file of /proc that a mount covers. */
static const char *cover_name(const struct proc_masks *masks, size_t i)
{
	return i < masks->count ? masks->names[i] : own_files[i - masks->count];
}

int proc_mask_clone_covers(
	const struct proc_masks *masks, int ret_fds[static PROC_COVERS_MAX], struct err *err)
{
	auto_fd int proc = open_proc(err);

	if (proc < 0)
		return proc;
	for (size_t i = 0; i < count_covers(masks); i++) {
		const char *name = cover_name(masks, i);

		ret_fds[i] = mounts_open_tree(proc, name, 0);
		if (ret_fds[i] < 0)
			return err_sys(err, "clone /proc/%s", name);
	}
	return 0;
}

int proc_mask_place_covers(
	const struct proc_masks *masks, const int fds[static PROC_COVERS_MAX], struct err *err)
{
	auto_fd int proc = open_proc(err);
	int r = proc < 0 ? proc : 0;

	for (size_t i = 0; i < count_covers(masks) && r == 0; i++)
		r = place(proc, cover_name(masks, i), fds[i], err);
	return r;
}
