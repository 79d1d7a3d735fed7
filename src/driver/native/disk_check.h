/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has e2fsck check and repair the image of a disk. e2fsck parses bytes that a sandbox could
 * influence, so it runs as a child that can do little: no privilege and no way to one, the image
 * and the system's libraries as its only files (where the kernel has Landlock), a short list of
 * system calls (none that makes a process or a socket, or that reaches another process), and limits
 * of memory, processor time and real time.
 */
#pragma once

#include "base/err.h"

/*
 * 0: the image is in order now, and may be mounted. -EEXIST (ERR_CONFLICT, disk_damaged): e2fsck
 * could not repair it; -errno: e2fsck could not run. The image stays in either case. Blocks for as
 * long as e2fsck takes, some minutes at most.
 */
int disk_check_run(int image_fd, struct err *err) must_check;

/* In a child: leaves it only what e2fsck needs, with the image as descriptor 3. 0 or -errno. */
int disk_check_confine(int image_fd) must_check;
