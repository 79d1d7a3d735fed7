/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --since: a time, or how long ago it was. */
#pragma once

#include "base/err.h"

#include <stdint.h>

int since_parse(const char *text, int64_t *ret_wall_ms, struct err *err) must_check;
