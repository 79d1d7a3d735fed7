/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers in the kernel's files of "key value" lines, by a descriptor that stays open. */
#pragma once

#include <stdint.h>

/* The number beside key; 0 where there is none, or no such file (fd -1). */
uint64_t cgroup_value_read(int fd, const char *key);
