/* SPDX-License-Identifier: Apache-2.0 */
/* The /dev of sandboxes. One for all of them: it is mounted read-only, so they cannot meet in it. */
#pragma once

#include "base/err.h"

/* Makes it and mounts it on the shelf as "dev". */
int devices_make(int shelf_fd, int *ret_fd, struct err *err) must_check;
