/* SPDX-License-Identifier: Apache-2.0 */
/* The native driver: asks the keeper. */
#pragma once

#include "driver/driver.h"

/* Connects to the keeper. Without limits_disk new sandboxes write as much as the host holds. */
int native_open(const char *socket_path, bool limits_disk, struct driver **ret_driver,
	struct err *err) must_check;

/* Whether a keeper answers there: 0, or -errno (-ECONNREFUSED, -ENOENT: there is none). */
int native_probe(const char *socket_path) must_check;

/* A connection that is only good for noticing that the keeper hung up. */
int native_watch_fd(struct driver *driver);
