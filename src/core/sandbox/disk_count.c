/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/disk_count.h"

#include "base/log.h"
#include "core/process/sandbox_output.h"

#include <string.h>

#define PAGE 64

/* An error keeps the number as it is, which is never too small. */
static int read_used(struct engine *engine, const char *id, uint64_t *ret_bytes, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct driver_usage usage = {0};
	int r = driver->ops->usage(driver, id, &usage, err);

	if (r == 0)
		*ret_bytes = usage.bytes;
	return r;
}

void disk_count_settle(struct sandbox *sandbox)
{
	struct store *store = sandbox->engine->config.store;
	uint64_t limit = sandbox->record.resources.disk_bytes, used = 0;
	struct workspace_record workspace;
	struct err err;
	int r = store_workspace_get(store, NULL, sandbox->id, &workspace, &err);

	if (r == 0 && (uint64_t)workspace.disk_bytes == limit)
		return;
	if (r == 0)
		r = read_used(sandbox->engine, sandbox->id, &used, &err);
	if (r == 0)
		r = store_workspace_set_disk(store, sandbox->id, used > limit ? used : limit, &err);
	if (r < 0)
		log_warning("the disk of sandbox %s counts as much as before: %s", sandbox->id,
			err.message);
}

static void measure(struct engine *engine, const char *id,
	int (*note)(struct store *store, const char *id, uint64_t disk_bytes, struct err *err))
{
	uint64_t used = 0;
	struct err err;
	int r = read_used(engine, id, &used, &err);

	if (r == 0)
		r = note(engine->config.store, id, used, &err);
	if (r < 0)
		log_warning("the kept workspace %s was not measured: %s", id, err.message);
}

void disk_count_reduce(struct engine *engine, const char *id)
{
	measure(engine, id, store_workspace_set_disk);
}

void disk_count_measure(struct engine *engine, const char *id)
{
	measure(engine, id, store_workspace_note_measured);
}

/* Of an older database either number may be missing. */
static void measure_missing(struct engine *engine, const char *id)
{
	struct workspace_record workspace;
	struct err err;

	if (store_workspace_get(engine->config.store, NULL, id, &workspace, &err) < 0)
		return; /* purged meanwhile */
	if (workspace.disk_bytes < 0)
		disk_count_measure(engine, id);
	if (workspace.output_bytes < 0)
		sandbox_output_measure(engine, id);
}

void disk_count_measure_all(struct engine *engine, bool (*is_closing)(struct engine *engine))
{
	char ids[PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	struct err err;
	int count;

	do {
		count = store_workspace_unmeasured(engine->config.store, after, ids, PAGE, &err);
		for (int i = 0; i < count && !is_closing(engine); i++) {
			measure_missing(engine, ids[i]);
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == PAGE && !is_closing(engine));
	if (count < 0)
		log_error("reaper: %s", err.message);
}
