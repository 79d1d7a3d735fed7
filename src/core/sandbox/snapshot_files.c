/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/snapshot_files.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/baseline.h"
#include "store/sandbox/store_snapshot.h"

#include <string.h>

#define PAGE 64

void snapshot_files_drop(struct engine *engine, const char *id)
{
	struct driver *driver = engine->config.driver;
	struct err err;
	int r = driver->ops->drop_snapshot(driver, id, &err);

	fail_point("snapshot.dropped");
	if (r == 0)
		r = store_snapshot_delete(engine->config.store, id, &err);
	if (r == 0)
		baseline_drop(engine, id);
	else
		log_error("snapshot %s stays until the next start: %s", id, err.message);
}

static int drop_unfinished(struct engine *engine, const char *sandbox_id, struct err *err)
{
	char ids[PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	int count;

	if (!driver_can(engine->config.driver, DRIVER_SNAPSHOTS))
		return 0;
	do {
		count = store_snapshot_unfinished(
			engine->config.store, sandbox_id, after, ids, PAGE, err);
		for (int i = 0; i < count; i++) {
			snapshot_files_drop(engine, ids[i]);
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == PAGE);
	return count < 0 ? count : 0;
}

int snapshot_files_settle(struct engine *engine, struct err *err)
{
	return drop_unfinished(engine, NULL, err);
}

void snapshot_files_purge(struct engine *engine, const char *sandbox_id)
{
	struct err err;

	if (drop_unfinished(engine, sandbox_id, &err) < 0)
		log_error(
			"checkpoints of %s stay until the next start: %s", sandbox_id, err.message);
}
