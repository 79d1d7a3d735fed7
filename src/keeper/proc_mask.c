/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/proc_mask.h"

#include "keeper/mounts.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * What /proc tells about the host. Only names that everybody may read are masked: this procfs belongs
 * to the host's root, who is not mapped inside, so a file with mode 0400 is closed already.
 */
static const char *const telling[] = {"acpi", "asound", "bus", "cmdline", "config.gz", "driver",
	"fs", "interrupts", "iomem", "ioports", "irq", "kallsyms", "kcore", "key-users", "keys",
	"kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "modules", "mtrr",
	"pagetypeinfo", "pressure", "sched_debug", "scsi", "slabinfo", "timer_list", "timer_stats",
	"vmallocinfo"};

void proc_mask_find(struct proc_masks *masks)
{
	masks->count = 0;
	for (size_t i = 0; i < array_len(telling); i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s", telling[i]);
		if (lstat(path, &st) < 0 || !(st.st_mode & 0004))
			continue;
		masks->names[masks->count] = telling[i];
		masks->is_dir[masks->count++] = S_ISDIR(st.st_mode);
	}
}

int proc_mask_clone(const struct proc_masks *masks, int shelf_fd, int dev_fd,
	int ret_fds[static PROC_MASKS_MAX], struct err *err)
{
	for (size_t i = 0; i < masks->count; i++) {
		bool is_dir = masks->is_dir[i];
		int r = mounts_clone(is_dir ? shelf_fd : dev_fd, is_dir ? "blank" : "null",
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC |
				(is_dir ? MOUNT_ATTR_NODEV : 0),
			-1, &ret_fds[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

int proc_mask_place(
	const struct proc_masks *masks, const int fds[static PROC_MASKS_MAX], struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < masks->count && r == 0; i++) {
		char place[64];

		snprintf(place, sizeof(place), "proc/%s", masks->names[i]);
		r = mounts_place(fds[i], place, err);
	}
	return r;
}

/* Files of /proc that the sandbox has its own of (view.h). */
static const char *const sheets[] = {"cpuinfo", "meminfo", "stat"};

static_assert(PROC_MASKS_MAX + array_len(sheets) == PROC_COVERS_MAX, "room for all covers");

static size_t count_covers(const struct proc_masks *masks)
{
	return masks->count + array_len(sheets);
}

/* The place of something that covers a file of /proc. */
static const char *cover_place(const struct proc_masks *masks, size_t i, char *path, size_t size)
{
	size_t count = masks->count;

	snprintf(path, size, "proc/%s", i < count ? masks->names[i] : sheets[i - count]);
	return path;
}

int proc_mask_clone_covers(
	const struct proc_masks *masks, int ret_fds[static PROC_COVERS_MAX], struct err *err)
{
	for (size_t i = 0; i < count_covers(masks); i++) {
		char path[64];

		cover_place(masks, i, path, sizeof(path));
		ret_fds[i] = mounts_open_tree(AT_FDCWD, path, 0);
		if (ret_fds[i] < 0)
			return err_sys(err, "clone /%s", path);
	}
	return 0;
}

int proc_mask_place_covers(
	const struct proc_masks *masks, const int fds[static PROC_COVERS_MAX], struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < count_covers(masks) && r == 0; i++) {
		char path[64];

		r = mounts_place(fds[i], cover_place(masks, i, path, sizeof(path)), err);
	}
	return r;
}
