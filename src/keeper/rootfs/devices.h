/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The /dev of sandboxes. All share one: it is mounted read-only, so they cannot communicate through
 * it.
 */
#pragma once

#include "base/err.h"

/* Makes it and mounts it on the mount area as "dev". */
int devices_make(int mount_area_fd, int *ret_fd, struct err *err) must_check;
