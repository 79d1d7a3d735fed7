/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes layers, and stacks of them, that nothing uses (LAYER_USERS in store/db/sql.c) and nothing used for a time.
 *
 * One at a time its row is marked as gone, in the statement that finds it unused; then its files move into the trash
 * by one rename; then the row goes. So whatever writes a row that uses it either comes first, and it stays, or finds
 * it gone and has it fetched anew. After a crash the next start goes on with what is marked. What a build or create under
 * way has touched is not taken: that was used since it began (templates_begin_use).
 *
 * Files that have no row are of another database, or of one that was lost: they are orphans, and stay until an
 * operator asks for their removal.
 */
#pragma once

#include "core/engine/engine.h"
#include "store/template/store_layer.h"

struct layer_collect_order {
	int64_t unused_s; /* takes what was not used for so long; 0: whatever nothing uses now */
	bool is_dry;	  /* removes nothing, and only tells what it would remove */
	bool orphans;	  /* takes what has no row too */
	bool keeps_cache; /* what steps of builds have made counts as used, however long ago that was */
	/* Is told of each; may be NULL. bytes are 0 where they are not known, and used_at_ms of an orphan. */
	void (*found)(void *arg, const struct layer_file *file, bool is_orphan);
	void *arg;
};

struct layer_collected {
	size_t layers, stacks;
	uint64_t bytes;
};

/* Does so now. */
int layer_collect_run(struct engine *engine, const struct layer_collect_order *order,
	struct layer_collected *ret_collected, struct err *err) must_check;

/* Calls each for layers and stacks that have no row, until it returns other than 0, which is then the result. */
int layer_collect_each_orphan(struct engine *engine,
	int (*each)(void *arg, const char *name, bool is_stack, struct err *err), void *arg,
	struct err *err) must_check;

/* Removes one that has no row; ERR_NOT_FOUND if it has one, ERR_CONFLICT if a stack has the layer. */
int layer_collect_drop_orphan(
	struct engine *engine, const char *name, bool is_stack, struct err *err) must_check;

/*
 * A thread that does so now and then, by the setting --layer-retention, and without regard to that while the
 * disk has less free than its reserve. NULL if the driver has no layers.
 */
struct layer_collector *layer_collector_start(struct engine *engine);
void layer_collector_stop(struct layer_collector *collector); /* NULL is allowed */
