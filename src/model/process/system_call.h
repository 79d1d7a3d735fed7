/* SPDX-License-Identifier: Apache-2.0 */
/* Names of system calls, in a table that the build makes from libseccomp's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SYSTEM_CALL_DIGITS 11 /* of any number, with NUL */

/*
 * Whether a program that is refused this call loses nothing but speed: where memory lies on a machine with several
 * memories. Numeric libraries ask for it at their start, and do without.
 */
bool system_call_is_hint(uint32_t number);

/* The name of a number on this architecture; for one that has none the number, written into `spare`. */
const char *system_call_name(uint32_t number, char spare[SYSTEM_CALL_DIGITS]);
