/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that stayed frozen. If the keeper and the child that copies a disk are killed at the same
 * time, nobody thaws the disk, and the kernel keeps its file system without any mount: its loop
 * device holds the lock of the image, so that no sandbox can start from it. The loop device leads
 * back to the file system.
 */
#pragma once

#include "keeper/disk/storage.h"

/* In a child, when the keeper starts: thaws the disks of sandboxes that are still on loop devices. */
void disk_thaw_left(const struct storage *storage);
