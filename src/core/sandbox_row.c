/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox_row.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/network.h"
#include "core/starter.h"

#include <errno.h>

int sandbox_row_write(
	struct sandbox *sandbox, const struct sandbox_record *changed, struct err *err)
{
	struct sandbox_record old;
	int r = store_sandbox_update(sandbox->engine->config.store, changed, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	old = sandbox->record;
	sandbox_record_copy(&sandbox->record, changed);
	pthread_mutex_unlock(&sandbox->state);
	sandbox_record_fini(&old);
	return 0;
}

int sandbox_row_write_status(struct sandbox *sandbox, enum sandbox_status status,
	const struct termination *end, struct err *err)
{
	struct sandbox_record changed;
	int r;

	sandbox_read(sandbox, &changed);
	changed.status = status;
	changed.end = *end;
	if (status == SANDBOX_RUNNING)
		changed.error_message[0] = '\0';
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}
int sandbox_row_write_running(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record changed;
	int64_t now = clock_wall_ms();
	int r;

	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_RUNNING;
	changed.started_at_ms = changed.last_active_at_ms = now;
	changed.end = (struct termination){0};
	changed.error_message[0] = '\0';
	atomic_store(&sandbox->last_active_ms, now);
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

/* One that does not run gets its new limits with its next start. life is held. */
static int resize(struct sandbox *sandbox, uint64_t from_bytes, uint64_t to_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = 0;

	if (sandbox_seems_up(sandbox) && from_bytes != to_bytes)
		r = driver->ops->resize(driver, sandbox->id, to_bytes, err);
	return r == -ENOENT ? 0 : r; /* it ended by itself just now */
}

/* life is held. */
static int change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	uint64_t disk_bytes = sandbox->record.resources.disk_bytes;
	struct sandbox_record before, changed;
	struct err ignored;
	bool is_other_network, is_other_start;
	int r;

	sandbox_read(sandbox, &before);
	sandbox_read(sandbox, &changed);
	apply(&changed, arg);
	is_other_network = !json_equal(changed.network, sandbox->record.network);
	is_other_start = !json_equal(changed.start, sandbox->record.start);
	r = resize(sandbox, disk_bytes, changed.resources.disk_bytes, err);
	if (r == 0) {
		r = sandbox_row_write(sandbox, &changed, err);
		if (r < 0 &&
			resize(sandbox, changed.resources.disk_bytes, disk_bytes, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
	}
	if (r == 0 && is_other_network) {
		r = network_change(sandbox, err);
		if (r < 0 && sandbox_row_write(sandbox, &before, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
	}
	if (r == 0 && is_other_start && sandbox_seems_up(sandbox))
		starter_apply(sandbox);
	sandbox_record_fini(&before);
	sandbox_record_fini(&changed);
	return r;
}

int sandbox_change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err) : change(sandbox, apply, arg, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}
