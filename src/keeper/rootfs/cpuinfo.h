/* SPDX-License-Identifier: Apache-2.0 */
/* The host's /proc/cpuinfo, cut to the number of processors that a sandbox has. */
#pragma once

#include "base/mem.h"

#include <stdio.h>

/* Copies the first count processors, and what is not about one; no more cores or siblings than count. */
int cpuinfo_cut(FILE *in, FILE *out, unsigned count) must_check;
