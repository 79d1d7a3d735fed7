/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a sandbox away: its processes (delete), then its workspace (purge). */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

/* Deletes the sandbox; with purge also what it left on disk. */
int removal_run(struct client *client, const char *id, bool purge, struct err *err) must_check;
