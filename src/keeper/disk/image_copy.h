/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the files of images (ext4_image.h), without their holes.
 *
 * A file system with reflinks shares the blocks. On others a copy goes past the host's page cache where that can be, by two
 * processes, of which one reads while the other writes. It takes as long as the disk needs to write, a fraction of the
 * processor time, and nobody else's place in the cache; so it is fast also while the processors are busy.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* As much as a file holds, without its holes. */
uint64_t image_copy_bytes_of(int fd);

/* Whether a SIGTERM waits, which is blocked: the keeper is gone, or the whole service is to end. */
bool image_copy_is_told_to_end(void);

/*
 * For children only, in which SIGTERM is blocked: copies the file of an image into a new one without a name in dirfd. If one
 * is waited for, the copy is begun to be written also where it goes through the cache. A SIGTERM ends it with -EINTR.
 */
int image_copy_make(int from, int dirfd, bool is_waited_for, int *ret_fd, struct err *err)
	must_check;
