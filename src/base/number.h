/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict parser of decimal numbers: digits only, no sign, no space, no leading zero, the whole
 * string. All input from outside uses it, so "+80", "080" and "80 " are errors.
 */
#pragma once

#include "base/mem.h"

#include <stdint.h>

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value) must_check;
