/* SPDX-License-Identifier: Apache-2.0 */
/* Who follows the events of one sandbox, its ports among them. */
#pragma once

#include "core/engine/engine.h"

struct subscription;

/*
 * Calls event for what happens to a sandbox from now on, and for each port of it that is open
 * (event_bus.h). While there is a subscription, the ports are watched (port_watch.h). A subscription
 * outlives the sandbox and goes on with another of the same id and owner; when another owner has the
 * id it ends, and `over` is called.
 */
struct subscription *engine_subscribe(
	struct sandbox *sandbox, event_fn event, void (*over)(void *arg), void *arg);

/* After it returned, neither is called again. */
void engine_unsubscribe(struct engine *engine, struct subscription *subscription);

/*
 * Ends subscriptions to an id that a new sandbox of another owner has taken. engine.lock is held.
 */
void engine_end_foreign_subscriptions(struct engine *engine, const struct sandbox_record *record);
