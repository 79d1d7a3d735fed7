/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the files of images (ext4_image.h), without their holes.
 *
 * A file system with reflinks shares the blocks. On others two processes copy them, of which one reads while the other
 * writes, in one of two ways.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* As much as a file holds, without its holes. */
uint64_t image_copy_bytes_of(int fd);

enum image_copy_way {
	/*
	 * Through the host's page cache; the kernel writes it later. What was copied before is there already, but for what
	 * the sandbox wrote since: its loop device goes past the cache, and the kernel forgets what that overwrites. So the
	 * next copy of the same disk reads only what changed, and takes as long as memory needs.
	 */
	IMAGE_COPY_CACHED,
	/*
	 * The same, and begun to be written as far as it is copied: for a copy that is mounted next. A loop device that goes
	 * past the cache waits for all that is in it.
	 */
	IMAGE_COPY_BEGUN,
	/*
	 * As IMAGE_COPY_CACHED, with a loop device that was made before the content: for a copy that is mounted next, and does
	 * not wait for the disk (ext4_image_mount_attached).
	 */
	IMAGE_COPY_ATTACHED,
	/*
	 * Past the cache where that can be. It takes as long as the disk needs to read and write, a fifth of the processor
	 * time, and nobody else's place in the cache; what is left for an fsync is little.
	 */
	IMAGE_COPY_DIRECT,
};

/* Through the cache if a copy is small beside the memory of the host: then the way is `small`. */
enum image_copy_way image_copy_choose(int from, enum image_copy_way small);

/* Whether a SIGTERM waits, which is blocked: the keeper is gone, or the whole service is to end. */
bool image_copy_is_told_to_end(void);

/*
 * For children only, in which SIGTERM is blocked: copies the file of an image into a new one without a name in dirfd. A SIGTERM
 * ends it with -EINTR. A copy that is made IMAGE_COPY_ATTACHED may have a loop device, else *ret_loop_fd stays as it is.
 */
int image_copy_make(int from, int dirfd, enum image_copy_way way, int *ret_fd, int *ret_loop_fd,
	struct err *err) must_check;
