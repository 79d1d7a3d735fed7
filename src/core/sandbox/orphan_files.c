/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/orphan_files.h"

#include "core/engine/capability.h"
#include "core/engine/sandbox_state.h"
#include "core/template/image/layer_collect.h"
#include "store/sandbox/store_snapshot.h"
#include "store/template/store_layer.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum driver_capability capability;
	size_t name_len;
} kinds[ORPHAN_FILES_KIND_COUNT] = {
	[ORPHAN_FILES_SNAPSHOT] = {"snapshot", DRIVER_SNAPSHOTS, ID_LEN},
	[ORPHAN_FILES_STACK] = {"stack", DRIVER_LAYERS, DRIVER_LAYER_NAME_LEN},
	[ORPHAN_FILES_LAYER] = {"layer", DRIVER_LAYERS, DRIVER_LAYER_NAME_LEN},
};

const char *orphan_files_kind_name(enum orphan_files_kind kind)
{
	return kinds[kind].name;
}

/* The next files on disk after a name: 1, or 0 if there are none. */
struct page {
	char names[DRIVER_PAGE][DRIVER_LAYER_NAME_LEN + 1];
	int count;
	bool is_last;
};

static int read_snapshots(
	struct driver *driver, const char *after, struct page *page, struct err *err)
{
	char ids[DRIVER_PAGE][ID_LEN + 1];
	int count = driver->ops->list_snapshots(driver, after, ids, err);

	for (int i = 0; i < count; i++)
		snprintf(page->names[i], sizeof(page->names[i]), "%s", ids[i]);
	page->is_last = count < DRIVER_PAGE;
	return count;
}

static int read_page(struct driver *driver, enum orphan_files_kind kind, const char *after,
	struct page *page, struct err *err)
{
	if (kind == ORPHAN_FILES_SNAPSHOT)
		return page->count = read_snapshots(driver, after, page, err);
	page->count = driver->ops->list_layers(
		driver, kind == ORPHAN_FILES_STACK, after, page->names, err);
	page->is_last = page->count < DRIVER_LAYER_PAGE;
	return page->count;
}

/* 1 or 0. */
static int is_known(
	struct engine *engine, enum orphan_files_kind kind, const char *name, struct err *err)
{
	return kind == ORPHAN_FILES_SNAPSHOT
		       ? store_snapshot_is_known(engine_store(engine), name, err)
		       : store_layer_is_known(engine_store(engine), name, err);
}

/* Those of a kind after a name: how many. */
static int list_kind(struct engine *engine, enum orphan_files_kind kind, const char *after_name,
	struct orphan_files files[], size_t max, struct err *err)
{
	char after[DRIVER_LAYER_NAME_LEN + 1];
	struct page page = {0};
	size_t count = 0;

	snprintf(after, sizeof(after), "%s", after_name);
	while (!page.is_last && count < max) {
		int r = read_page(engine_driver(engine), kind, after, &page, err);

		for (int i = 0; r >= 0 && i < page.count && count < max; i++) {
			memcpy(after, page.names[i], sizeof(after));
			r = is_known(engine, kind, after, err);
			if (r == 0) {
				files[count].kind = kind;
				memcpy(files[count++].name, after, sizeof(after));
			}
		}
		if (r < 0)
			return r;
	}
	return (int)count;
}

int orphan_files_list(struct engine *engine, const struct orphan_files *after,
	struct orphan_files files[], size_t max, struct err *err)
{
	size_t count = 0;

	for (int kind = (int)after->kind; kind < ORPHAN_FILES_KIND_COUNT; kind++) {
		int r;

		if (!driver_can(engine_driver(engine), kinds[kind].capability))
			continue;
		r = list_kind(engine, (enum orphan_files_kind)kind,
			kind == (int)after->kind ? after->name : "", files + count, max - count,
			err);
		if (r < 0)
			return r;
		count += (size_t)r;
	}
	return (int)count;
}

/* Finds files of a name on disk: 1, or 0 if there are none. */
static int find(
	struct engine *engine, enum orphan_files_kind kind, const char *name, struct err *err)
{
	struct orphan_files found = {.kind = kind};
	int r;

	do {
		r = list_kind(engine, kind, found.name, &found, 1, err);
	} while (r > 0 && strcmp(found.name, name) < 0);
	return r > 0 && strcmp(found.name, name) == 0 ? 1 : r < 0 ? r : 0;
}

int orphan_files_purge(struct engine *engine, const char *name, struct err *err)
{
	struct driver *driver = engine_driver(engine);

	for (int kind = 0; kind < ORPHAN_FILES_KIND_COUNT; kind++) {
		int r;

		if (strlen(name) != kinds[kind].name_len ||
			!driver_can(driver, kinds[kind].capability))
			continue;
		r = find(engine, (enum orphan_files_kind)kind, name, err);
		if (r < 0)
			return r;
		if (r > 0)
			return kind == ORPHAN_FILES_SNAPSHOT
				       ? driver->ops->drop_snapshot(driver, name, err)
				       : layer_collect_drop_orphan(
						 engine, name, kind == ORPHAN_FILES_STACK, err);
	}
	return err_explain(err, ERR_NOT_FOUND, "orphan_not_found", "list them with GET /v1/orphans",
		"there is no orphan %.64s", name);
}
