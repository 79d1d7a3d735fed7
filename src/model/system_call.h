/* SPDX-License-Identifier: Apache-2.0 */
/* Names of system calls, in a table that the build makes from libseccomp's. */
#pragma once

#include <stdint.h>

#define SYSTEM_CALL_DIGITS 11 /* of any number, with NUL */

/* The name of a number on this architecture; for one that has none the number, written into `spare`. */
const char *system_call_name(uint32_t number, char spare[SYSTEM_CALL_DIGITS]);
