/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/sandbox_row.h"

#include "base/log.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"

#include <stdio.h>

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
	if (end->reason != END_NONE)
		changed.end = *end;
	/* It told of a start that failed, or of a disk, which a sandbox that is paused still has. */
	if (status != SANDBOX_PAUSED)
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
	int64_t now = store_clock_ms(sandbox->engine->config.store);
	int r;

	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_RUNNING;
	changed.job[0] = '\0';
	changed.started_at_ms = changed.last_active_at_ms = now;
	changed.error_message[0] = '\0';
	atomic_store(&sandbox->last_active_ms, now);
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

/* life is held. */
static void write_failed_disk(struct sandbox *sandbox)
{
	struct sandbox_record changed;
	struct err err;

	sandbox_read(sandbox, &changed);
	snprintf(changed.error_message, sizeof(changed.error_message),
		"the disk failed and takes no more writes, as it does when the disk of the host is "
		"full: "
		"free space there, then stop and start the sandbox, which has its disk checked");
	if (sandbox_row_write(sandbox, &changed, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	else
		sandbox_publish(sandbox, "sandbox.disk_failed");
	sandbox_record_fini(&changed);
}

void sandbox_row_note_failed_disk(struct sandbox *sandbox)
{
	/* One that a verb is at work on has its turn in the next round. */
	if (pthread_mutex_trylock(&sandbox->life) != 0)
		return;
	if (!sandbox->gone && sandbox_seems_up(sandbox) && !sandbox->record.error_message[0])
		write_failed_disk(sandbox);
	pthread_mutex_unlock(&sandbox->life);
}
