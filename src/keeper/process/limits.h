/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource limits of a sandbox's processes. The user namespace is made under them too: then what the
 * kernel counts for each user (signals, timers, queues, locked memory) is bounded for all users of the
 * sandbox together.
 */
#pragma once

#include "base/err.h"

/* Sets all limits but that of cores. A value above the keeper's own limit is cut to that. */
int limits_set(struct err *err) must_check;

/*
 * Holds the limit of cores at 1. That is the value at which the kernel starts no handler that reads cores
 * from a pipe (core_pattern): at 0 it does, as root of the host.
 */
int limits_hold_cores(struct err *err) must_check;
