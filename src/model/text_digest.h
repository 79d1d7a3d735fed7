/* SPDX-License-Identifier: Apache-2.0 */
/* A number that stands for a text where the whole of it is too long: two that were not made for it never meet. */
#pragma once

#include <stdint.h>

/* Never 0. */
uint64_t text_digest(const char *text);
