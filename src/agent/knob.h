/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the kernel's files of "key value" lines, read again and again by an open descriptor. */
#pragma once

#include <stdint.h>

/* The number beside key; 0 where there is none, or no such file (fd -1). */
uint64_t knob_read(int fd, const char *key);
