/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one strict reader of decimal numbers: digits only, no sign, no space, no leading zero, the
 * whole string. Used for everything that comes from outside, so "+80", "080" and "80 " are errors.
 */
#pragma once

#include "base/mem.h"

#include <stdint.h>

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value) must_check;
