/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/engine/engine.h"

/* Makes rows and reality equal when the daemon starts; before anything else uses the engine. */
int reconcile(struct engine *engine, struct err *err) must_check;
