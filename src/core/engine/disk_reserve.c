/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/disk_reserve.h"

#include "base/disk_room.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"

#include <errno.h>

#define GROWTH_SHARES                                                                              \
	128 /* as many sandboxes can write their share before the reserve is used up */

uint64_t disk_reserve_growth(const struct engine *engine)
{
	return engine->config.disk_reserve / GROWTH_SHARES;
}

struct enforcement {
	enum disk_growth growth;
	bool is_complete;
};

static void enforce(struct sandbox *sandbox, void *arg)
{
	struct engine *engine = sandbox->engine;
	struct driver *driver = engine->config.driver;
	struct enforcement *round = arg;
	struct err err;
	bool is_up;
	int r = 0;

	/* One that a verb is at work on has its turn in the next round. */
	if (pthread_mutex_trylock(&sandbox->life) != 0) {
		round->is_complete = false;
		return;
	}
	is_up = sandbox_seems_up(sandbox) && !sandbox->gone && !sandbox->record.parent[0];
	if (is_up && sandbox->growth != round->growth && driver_can(driver, DRIVER_LIVE_RESIZE))
		r = driver->ops->resize(driver, sandbox->id, sandbox->record.resources.disk_bytes,
			round->growth == GROWTH_HELD ? disk_reserve_growth(engine) : 0, &err);
	if (r == 0)
		sandbox->growth = is_up ? round->growth : GROWTH_UNKNOWN;
	else if (r != -ENOENT) /* it ended by itself just now */
		log_error("sandbox %s: %s", sandbox->id, err.message);
	pthread_mutex_unlock(&sandbox->life);
}

void disk_reserve_enforce(struct engine *engine)
{
	bool is_short = disk_reserve_is_short(engine);
	struct enforcement round = {
		.growth = is_short ? GROWTH_HELD : GROWTH_FREE, .is_complete = true};

	if (!is_short && !engine->has_held)
		return;
	if (is_short && !engine->is_short)
		log_warning("the disk of the host is full: nothing is created or started, and the "
			    "disks "
			    "of sandboxes hardly grow, until more than the reserve is free");
	engine->is_short = is_short;
	engine_visit(engine, enforce, &round);
	engine->has_held = is_short || !round.is_complete;
}

bool disk_reserve_is_short(const struct engine *engine)
{
	return fd_free_bytes(engine->config.logs_fd) < engine->config.disk_reserve;
}

int disk_reserve_check(const struct engine *engine, struct err *err)
{
	return disk_reserve_check_more(engine, 0, err);
}

int disk_reserve_check_more(const struct engine *engine, uint64_t bytes, struct err *err)
{
	return disk_room_check(engine->config.logs_fd, engine->config.disk_reserve, bytes, err);
}
