/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of libmicrohttpd; their argument is the loop that runs it. */
#pragma once

#include "http/server/loop.h"

extern const struct loop_callbacks mhd_callbacks;
