/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices when a port of a sandbox opens or closes, for those who follow its events: `port.opened` and
 * `port.closed`. The kernel tells nobody of that, so the agent is asked now and then; but only while somebody
 * follows and anything runs in the sandbox, and the more rarely the less happens there (port_pace.h). One watch
 * serves all who follow one sandbox.
 *
 * It goes by the id, not by a handle: events go on over the end of a sandbox and its next start.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"

struct port_watch;

/*
 * Joins the watch of a sandbox, which is made if need be, and tells the one who joins of the ports that are
 * known to be open. engine.lock is held.
 */
struct port_watch *port_watch_join(struct engine *engine, const char *sandbox_id,
	const struct owner *owner, event_fn event, void *arg);

/* NULL is fine. engine.lock is held. */
void port_watch_leave(struct port_watch *watch);
