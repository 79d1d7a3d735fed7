/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file system has room beside the part of it that is kept free (--disk-reserve). */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* 0 if the file system of that directory keeps its reserve when it takes so many bytes more; else ERR_NO_SPACE with what
 * to do. */
int disk_room_check(int dir_fd, uint64_t reserve, uint64_t more, struct err *err) must_check;
