/* SPDX-License-Identifier: Apache-2.0 */
/* Events of kept processes, for whoever follows the topic by its name (core/engine/event_bus.h). */
#pragma once

#include "core/process/process.h"

/* Publishes "process.started" or "process.exited", with what is known of it now. */
void process_announce(struct process *process, const char *type);
