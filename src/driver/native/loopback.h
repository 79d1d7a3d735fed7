/* SPDX-License-Identifier: Apache-2.0 */
/* Connects sockets to ports on the loopback of the network that they were made in. */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Connects a non-blocking TCP socket to 127.0.0.1, or to ::1. 0 or -errno: -ETIMEDOUT if it takes
 * longer than timeout_ms, -ECONNREFUSED also where there is no IPv6.
 */
int loopback_connect(int sock, bool is_v6, uint16_t port, int timeout_ms) must_check;
