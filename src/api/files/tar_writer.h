/* SPDX-License-Identifier: Apache-2.0 */
/* Items that a helper in the sandbox sends (wire/agent.h, PACK) as a tar archive. They are hostile input. */
#pragma once

#include "base/mem.h"

/* Reads items until the last one and writes the archive; both descriptors block. -EPROTO for what is no item.
 * On failure the archive has no end. */
int tar_writer_run(int items_fd, int out_fd) must_check;
