/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the disks of workspaces count of their owners' quotas (store/sandbox/store_workspace.c): the highest limit that
 * one had, until it was measured that less is on it.
 */
#pragma once

#include "core/engine/sandbox_state.h"

/* The limit became smaller, or a larger one was not given: counts the limit, or what is on the disk if that is
 * more. life is held. */
void disk_count_settle(struct sandbox *sandbox);

/* The sandbox that had taken up a kept workspace was never finished: counts what is on the disk. Its row is still
 * there, so that no other takes the workspace up meanwhile. */
void disk_count_reduce(struct engine *engine, const char *id);

/* Measures one that was kept before disks were counted. */
void disk_count_measure(struct engine *engine, const char *id);

/* Measures all of those, for as long as the engine is not closing. */
void disk_count_measure_all(struct engine *engine, bool (*is_closing)(struct engine *engine));
