/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the daemon: its sandboxes, the store, the driver, the event loop, the reaper and the watches of the host.
 * There is one engine; it is passed around, not global.
 *
 * Lock order, everywhere: sandbox.life, then engine.rows_lock, then engine.lock, then sandbox.state, then
 * the locks of link, store and stream, which call nobody back while held.
 */
#pragma once

#include "core/engine/engine_config.h"
#include "event/timer.h"

struct store *engine_store(struct engine *engine);
struct driver *engine_driver(struct engine *engine);

/* A timer of the engine's event loop; see timer.h. */
struct timer *engine_open_timer(
	struct engine *engine, void (*expired)(void *arg), void (*release)(void *arg), void *arg);

/* Somebody may no longer see a preview: what is open is looked at again. */
void engine_note_unshared(struct engine *engine);

/* What it has in use, for whoever measures it. */
struct engine_stats {
	unsigned running, processes; /* places of sandboxes that run, and of kept processes */
	uint64_t denials;	     /* connections that egress has refused since the start */
};
void engine_measure(struct engine *engine, struct engine_stats *ret_stats);

/* Publishes an event of a sandbox. sandbox.state is not held. */
void sandbox_tell(struct sandbox *sandbox, const char *type, const char *json);

/* Publishes what it is now; and an event of that type, with its status. */
void sandbox_announce(struct sandbox *sandbox);
void sandbox_publish(struct sandbox *sandbox, const char *type);
