/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of images that nobody waits for until they are on the host's disk.
 *
 * A power failure may take a file's content and leave its name. So such a copy is marked with how much data it has, before it
 * has a name. A file system takes a block of a file for data when what belongs there was written (until then it is one of no
 * file, or one that reads as a hole), so a copy that has less data than its mark says is not whole, and one that has as much is.
 * The mark goes when the copy is on the disk.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* Marks a copy. -errno if it cannot be: then it has to be waited for. */
int late_copy_mark(int fd) must_check;

enum late_copy { LATE_COPY_WRITTEN /* it has no mark */, LATE_COPY_WHOLE, LATE_COPY_TORN };

enum late_copy late_copy_look(int fd);

/* Brings a copy to the disk and takes its mark away. */
int late_copy_write(int fd, struct err *err) must_check;
