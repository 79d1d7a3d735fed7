/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: made before anything else, so that a taken port is a clear message. */
#pragma once

#include "base/err.h"

#include <stdint.h>

#define LISTENER_HOST_MAX 64

struct listener {
	int fd;
	char host[LISTENER_HOST_MAX]; /* as in a URL: "127.0.0.1", "[::1]" */
	uint16_t port;
};

/* `address` is "127.0.0.1:9090" or "[::1]:9090"; port 0 picks one. The descriptor is the caller's. */
int listener_open(const char *address, struct listener *ret_listener, struct err *err) must_check;
