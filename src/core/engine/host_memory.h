/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What the kernel believes can be had of memory without swapping; UINT64_MAX if it does not say. */
uint64_t host_memory_available(void);
