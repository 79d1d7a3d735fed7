/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that holds a file system: ext4 in a sparse file, mounted over a loop device.
 *
 * All images are alike. They are born as a copy of one blank that mke2fs made when the keeper was built
 * (image_blank.sh), and hold IMAGE_BYTES; how much of that may be used is told to the kernel while one
 * is mounted, as blocks that are reserved for nobody. So every blank fits every sandbox and can be made
 * ahead, and a limit changes with one write and no pause. The road not taken is growing file systems
 * (EXT4_IOC_RESIZE_FS): it takes milliseconds, cannot shrink, and wants CAP_SYS_RESOURCE.
 *
 * Nobody but the kernel ever writes into an image, so it never mounts bytes that a sandbox chose.
 * Whoever mounts holds the lock of the file, by the loop device itself: not even a keeper that was
 * killed in the middle can leave an image to be mounted twice. Device and lock go with the mount.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>

#define IMAGE_BYTES (64ull << 30)

/* Makes a blank in dirfd, without a name yet. */
int image_make(int dirfd, int *ret_fd, struct err *err) must_check;

/*
 * Mounts one, detached; waits until nobody else has it mounted. The file may be closed then. What comes
 * back is a place (O_PATH); the functions below that write take a directory in it, opened.
 */
int image_mount(int file_fd, int *ret_mount_fd, struct err *err) must_check;

/* The kernel's knob for the limit of the mounted image that fd is in. */
int image_open_knob(int fd, int *ret_knob_fd, struct err *err) must_check;

/* Sets how many bytes the image that fd is in may hold. More than it has means all. */
int image_set_limit(int fd, int knob_fd, uint64_t bytes, struct err *err) must_check;

/* Bytes and files that are in use, and how many files there can be. */
void image_usage(int fd, struct keeper_stats *stats);

/* Whether the file holds much more than what is in use, and what the file system needs for that. */
bool image_is_bloated(int file_fd, int fd);

/*
 * Gives the host back what the file holds of blocks that are free, if that is much. The kernel does it by
 * itself when something is deleted, but not right before an unmount, and not when short of room.
 */
void image_trim(int file_fd, int fd);

/*
 * Makes the loop device go past the host's page cache, where everything would be a second time. Not from
 * the beginning: a new image is in that cache, and is mounted several times as fast from there.
 */
void image_go_direct(int fd);

/* For an image that is being thrown away: nothing more is written to it. */
void image_forsake(int fd);
