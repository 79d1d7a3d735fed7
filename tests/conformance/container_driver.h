/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver as those of container engines will be, with an engine as small as it can be: a sandbox is
 * a process in namespaces of its own, with the host's files below an overlay, whose first process is
 * the agent. No descriptor is passed to it: it listens on TCP, and driver/remote does the rest.
 */
#pragma once

#include "driver/driver.h"

/* The engine, which outlives the driver. SANDLOT_AGENT names the agent; needs root. */
void container_engine_begin(void);
void container_engine_finish(void);

struct driver *container_driver_open(void);
