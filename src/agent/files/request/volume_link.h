/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the volumes that an image names durable. The keeper, which mounts, takes no paths; so the directory is a link
 * to one of the same path in the durable directory /volumes, which at first has what the image has there.
 *
 * May be done again, and must be at each start: the link is part of the system layer, which a failure of the host
 * takes; what it leads to stays.
 */
#pragma once

#include "agent/files/helper_io.h"

/* 1: it was made; 0: nothing was to do, also where a volume cannot be: of what the machine has, such as /proc, and of what is no directory; -errno. */
int volume_link_make(const struct helper_io *helper_io, const char *path) must_check;
