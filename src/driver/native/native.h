/* SPDX-License-Identifier: Apache-2.0 */
/* The native driver: asks the keeper. */
#pragma once

#include "driver/driver_kind.h"

/*
 * Where the operator wants no disk limits (limits_disk) that is a choice of theirs, not something
 * that is missing: sandboxes with a limit in their row start without it.
 */
#define NATIVE_CAPABILITIES                                                                        \
	(DRIVER_BIT(DRIVER_FREEZE) | DRIVER_BIT(DRIVER_DISK_LIMIT) |                               \
		DRIVER_BIT(DRIVER_LIVE_RESIZE) | DRIVER_BIT(DRIVER_EGRESS_POLICY) |                \
		DRIVER_BIT(DRIVER_ISOLATED_EXEC) | DRIVER_BIT(DRIVER_ADOPT) |                      \
		DRIVER_BIT(DRIVER_LAYERS) | DRIVER_BIT(DRIVER_SNAPSHOTS) |                         \
		DRIVER_BIT(DRIVER_PROJECT_FILES) | DRIVER_BIT(DRIVER_MEMBERS))

/* Ends the keeper and all its sandboxes, also one whose version native_open() refuses. */
int native_end(const struct driver_config *config, struct err *err) must_check;

/* Connects to the keeper. Without limits_disk new sandboxes write as much as the host holds. */
int native_open(const struct driver_config *config, struct driver **ret_driver, struct err *err)
	must_check;
