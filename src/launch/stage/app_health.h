/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a part of an app answers on its port. It is looked at from outside of the sandbox, as its preview is; what
 * answers is hostile input, of which a status line is read.
 */
#pragma once

#include "core/engine/sandbox_handle.h"

#include <stdint.h>

#define APP_HEALTH_NONE 0 /* nothing answers with HTTP */

/* The status that GET of a path has on a port of a sandbox that runs, or APP_HEALTH_NONE. */
int app_health_ask(struct sandbox *sandbox, uint16_t port, const char *path);

/* Whether anything takes connections there. */
bool app_health_listens(struct sandbox *sandbox, uint16_t port);
