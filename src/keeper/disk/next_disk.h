/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of a fork, which is mounted as soon as it is copied, before the sandbox is there that it is for: then nobody waits
 * until the copy is on the host's disk (ext4_image.h).
 *
 *   snapshots/<snapshot>.img   the copy
 *   disks/<snapshot>           on the mount area: where it is mounted until it becomes the disk of a sandbox
 *
 * Whoever drops the snapshot unmounts it too, so it goes also if the sandbox is never made.
 */
#pragma once

#include "keeper/disk/disk.h"

/* In the child that copied: mounts the copy, which has its name, over the loop device that it was made with. */
int next_disk_mount(const struct disks *disks, const char *snapshot, int copy_fd, int loop_fd,
	struct err *err) must_check;

/* In a child: shows its files as those of the range of base_uid; nothing if it is not mounted. */
int next_disk_map(const struct disks *disks, const char *snapshot, uint32_t base_uid,
	struct err *err) must_check;

/* In the keeper: moves the mount to where that of the disk of a sandbox is: 1, or 0 if it is not mounted. */
int next_disk_give(const struct disks *disks, const char *snapshot, const char *id, struct err *err)
	must_check;

/* In a child: unmounts it, as nobody wants it. */
void next_disk_drop(const struct disks *disks, const char *snapshot);
