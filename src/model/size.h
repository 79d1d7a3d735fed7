/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: a number of bytes, or one with Ki, Mi, Gi, Ti, Pi. */
#pragma once

#include "base/mem.h"

#include <stdint.h>

#define SIZE_TEXT_LEN 24

int size_parse(const char *text, uint64_t *ret_bytes) must_check;

/* The shortest exact form: 1073741824 is "1Gi", 1000 is "1000". */
void size_format(uint64_t bytes, char text[SIZE_TEXT_LEN]);
