/* SPDX-License-Identifier: Apache-2.0 */
/* How the engine (core/engine/engine.h) begins and ends. */
#pragma once

#include "core/engine/engine.h"

/* Makes rows and reality equal (reconcile.c), then starts the reaper and the watches of the host. */
int engine_open(const struct engine_config *config, struct engine **ret_engine, struct err *err)
	must_check;

/* Releases all sandboxes without stopping them. */
void engine_close(struct engine *engine);
