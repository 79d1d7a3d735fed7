/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds a file system: ext4 in a sparse file, mounted over a loop device.
 *
 * All images are alike. Each starts as a copy of one blank that mke2fs made when the keeper was
 * built (image_blank.sh), and holds EXT4_IMAGE_BYTES; how much of that may be used is told to the
 * kernel while one is mounted, as reserved blocks that no user may take. So every blank fits every
 * sandbox and can be made ahead, and a limit changes with one write and no pause. The road not
 * taken is growing file systems (EXT4_IOC_RESIZE_FS): it takes milliseconds, cannot shrink, and
 * wants CAP_SYS_RESOURCE.
 *
 * statfs() therefore tells the whole as the size, and the limit only in what is available. A project quota in the image
 * would make it tell the limit, but a kernel without CONFIG_QFMT_V2 refuses to mount an image that has the feature, and
 * reserved blocks are the only other number that can be changed while it is mounted. (Were more of the superblock's
 * blocks told as overhead, the size would be less but not what is free, and programs take the difference for what is
 * used. A file that takes the rest would mend that, but overhead is read at the mount: after a limit has grown
 * more would be free than there is. And an agent that answers statfs() by itself would have to take the ids of the
 * caller to read its memory, which makes the agent traceable and deaf to the end of the keeper for that moment, or
 * fork for each, which every ls, cp and mkdir of Debian asks for twice.) The template `host` has a
 * df that adds up what is used and available (rootfs/host_template.c).
 *
 * Only the kernel and e2fsck ever write into an image, so the kernel never mounts bytes that a
 * sandbox chose. An image that was not unmounted cleanly, or in which the kernel met an error, is
 * not mounted: sandlotd has e2fsck check it first (KEEPER_CHECK). Nor is any mounted while the host
 * has no room for its journal: ext4 would lose what it writes there, and more with each mount.
 *
 * The process that mounts an image holds the lock of its file through the loop device: so even a
 * keeper that was killed meanwhile cannot leave an image to be mounted twice. Device and lock end
 * with the mount.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <sys/types.h>

#define EXT4_IMAGE_BYTES (64ull << 30)

/* Makes a blank in dirfd, without a name. */
int ext4_image_make(int dirfd, int *ret_fd, struct err *err) must_check;

/*
 * Whether the superblock says that the file was unmounted cleanly and that no error was met in it.
 */
bool ext4_image_is_clean(int file_fd);

/*
 * Gives an image that may not be mounted to a user, for e2fsck, and locks it; waits until it is
 * mounted nowhere. 0 if it may be mounted as it is, else 1. The next ext4_image_mount takes it
 * back.
 */
int ext4_image_lend(int file_fd, uid_t uid, struct err *err) must_check;

/*
 * Keeps an image that may be mounted as it is from being mounted until the file is closed; waits until it is
 * mounted nowhere.
 */
int ext4_image_hold(int file_fd, struct err *err) must_check;

/* Notes in an error that the disk has to be checked, if a failure on its file system means that. */
void ext4_image_note_damage(int r, struct err *err);

/*
 * Mounts an image, detached; waits until it is mounted nowhere else. The caller may then close the
 * file. *ret_mount_fd is an O_PATH descriptor; the functions below that write take a directory in
 * it, opened.
 */
int ext4_image_mount(int file_fd, int *ret_mount_fd, struct err *err) must_check;

/*
 * A mount that does not wait for the host's disk, in two steps. A loop device waits, when it is made, until all that is in its
 * file is on the disk: so this one is made on a file that has its size and no content yet. It is free again once it is neither
 * open nor mounted.
 */
int ext4_image_attach(int file_fd, int *ret_loop_fd, struct err *err) must_check;

/* Mounts it, detached, when the content is there. The first commit of its journal brings all of it to the disk. */
int ext4_image_mount_attached(int file_fd, int loop_fd, int *ret_mount_fd, struct err *err)
	must_check;

/* Mounts an image that nothing writes to any more, detached and read-only; any number of times. */
int ext4_image_mount_read_only(int file_fd, int *ret_mount_fd, struct err *err) must_check;

/* Opens the kernel's file that sets the limit of the mounted image that fd is in. */
int ext4_image_open_limit(int fd, int *ret_limit_fd, struct err *err) must_check;

/* Sets how many bytes the image that fd is in may hold. More than it has means all. */
int ext4_image_set_limit(int fd, int limit_fd, uint64_t bytes, struct err *err) must_check;

/* Bytes and files that are in use, and how many files there can be. */
void ext4_image_usage(int fd, struct keeper_stats *stats);

/*
 * Whether ext4 met an error in the mounted image that fd is in: then it has taken no writes since. The flag of the
 * mount does not tell: since 6.15 the kernel leaves it as it is.
 */
bool ext4_image_has_failed(int fd);

/* Whether the file holds much more than what is in use, and what the file system needs for that. */
bool ext4_image_is_bloated(int file_fd, int fd);

/*
 * Gives the host back what the image, open as file_fd, holds of blocks that are free: 0, or -errno. A transaction that fails
 * meanwhile would lose what it had freed, so there is nobody who writes, or room on the host.
 */
int ext4_image_trim(int file_fd, int fd) must_check;

/* Whether the disk of the host, any file of which is open, has room for what ext4 may have to write at once. */
bool ext4_image_host_has_room(int host_fd);

/*
 * Makes the loop device go past the host's page cache, where everything would be a second time. Not from
 * the beginning: a new image is in that cache, and is mounted several times as fast from there.
 */
void ext4_image_go_direct(int fd);

/* Makes sure that nothing more is written to an image that is being discarded. */
void ext4_image_shutdown(int fd);
