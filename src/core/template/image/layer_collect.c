/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/layer_collect.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_state.h"
#include "core/template/image/layer_install.h"
#include "core/template/image/tree_stream.h"
#include "core/template/templates.h"
#include "store/store_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PAGE	       64
#define ROUND_S	       1
#define EVERY_MAX_S    3600  /* between two collections */
#define SHORT_EVERY_MS 10000 /* the same while the disk is full */
#define ENTRY_BYTES    4096  /* what an entry of a layer takes by itself */

static struct layer_installs *installs_of(struct engine *engine)
{
	return templates_installs(engine->config.templates);
}

/* --- one layer or stack --- */

/* While one is held, nobody makes it anew. */
struct hold {
	struct layer_installing *layer;
	bool is_stack;
};

static bool hold(struct engine *engine, const struct layer_file *file, struct hold *hold)
{
	auto_free char *text = mem_printf(DIGEST_PREFIX "%s", file->name);
	struct digest digest;

	*hold = (struct hold){.is_stack = file->is_stack};
	if (file->is_stack) {
		pthread_mutex_lock(&installs_of(engine)->stacking);
		return true;
	}
	if (digest_parse(text, &digest, NULL) < 0)
		return false;
	hold->layer = layer_installs_hold(installs_of(engine), &digest);
	return hold->layer;
}

static void release(struct engine *engine, struct hold *hold)
{
	if (hold->is_stack)
		pthread_mutex_unlock(&installs_of(engine)->stacking);
	else
		layer_installs_release(installs_of(engine), hold->layer);
}

static int drop_files(struct driver *driver, const struct layer_file *file, struct err *err)
{
	return file->is_stack ? driver->ops->drop_stack(driver, file->name, err)
			      : driver->ops->drop_layer(driver, file->name, err);
}

/* Of one that is marked, files and row go; 1, or 0 if a stack has it, as one of a version that noted no layers. */
static int remove_marked(struct engine *engine, const struct layer_file *file, struct err *err)
{
	struct store *store = engine_store(engine);
	int r;

	fail_point("collect.marked");
	r = drop_files(engine_driver(engine), file, err);
	if (r < 0 && strcmp(err->code, DRIVER_LAYER_IN_USE) == 0)
		return store_layer_unmark(store, file->name, err);
	fail_point("collect.dropped");
	if (r == 0)
		r = store_layer_forget(store, file->name, err);
	return r < 0 ? r : 1;
}

/* 1 if it went. */
static int collect_one(
	struct engine *engine, const struct layer_file *file, int64_t before_ms, struct err *err)
{
	struct hold held;
	int r;

	if (!hold(engine, file, &held))
		return 0;
	r = store_layer_mark(engine_store(engine), file->name, before_ms, err);
	if (r > 0)
		r = remove_marked(engine, file, err);
	release(engine, &held);
	return r;
}

/* --- all --- */

struct collection {
	struct engine *engine;
	const struct layer_collect_order *order;
	struct layer_expiry expiry;
	struct layer_collected collected;
};

static void count(struct collection *collection, const struct layer_file *file, bool is_orphan)
{
	struct layer_collected *collected = &collection->collected;

	*(file->is_stack ? &collected->stacks : &collected->layers) += 1;
	collected->bytes += file->bytes > 0 ? (uint64_t)file->bytes : 0;
	if (collection->order->found)
		collection->order->found(collection->order->arg, file, is_orphan);
}

static int collect_kind(struct collection *collection, bool stacks, struct err *err)
{
	struct layer_file page[PAGE];
	char after[STORE_LAYER_NAME_LEN + 1] = "";
	int r, found;

	do {
		found = store_layer_list_unused(engine_store(collection->engine),
			&collection->expiry, collection->order->is_dry, stacks, after, page, PAGE,
			err);
		for (int i = 0; i < found; i++) {
			memcpy(after, page[i].name, sizeof(after));
			r = collection->order->is_dry ? 1
						      : collect_one(collection->engine, &page[i],
								collection->expiry.before_ms, err);
			if (r < 0)
				return r;
			if (r > 0)
				count(collection, &page[i], false);
		}
	} while (found == PAGE);
	return found < 0 ? found : 0;
}

int layer_collect_each_orphan(struct engine *engine,
	int (*each)(void *arg, const char *name, bool is_stack, struct err *err), void *arg,
	struct err *err)
{
	struct driver *driver = engine_driver(engine);
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1];
	int found = 0, r = 0;

	/* Stacks first: a layer goes only if no stack has it. */
	for (int stacks = 1; stacks >= 0 && found >= 0; stacks--) {
		char after[DRIVER_LAYER_NAME_LEN + 1] = "";

		do {
			found = driver->ops->list_layers(driver, stacks, after, names, err);
			for (int i = 0; i < found; i++) {
				memcpy(after, names[i], sizeof(after));
				r = store_layer_is_known(engine_store(engine), names[i], err);
				if (r == 0)
					r = each(arg, names[i], stacks, err);
				else if (r > 0)
					r = 0;
				if (r != 0)
					return r;
			}
		} while (found == DRIVER_LAYER_PAGE);
	}
	return found < 0 ? found : 0;
}

static int count_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	uint64_t *bytes = arg;

	(void)err;
	*bytes += ENTRY_BYTES + (entry->kind == LAYER_FILE ? entry->size : 0);
	return 0;
}

/* What a layer of an earlier version takes, which noted no such thing; 0 if it cannot be read. */
static int64_t measure(struct engine *engine, const char *name)
{
	uint64_t bytes = 0;
	const struct layer_sink sink = {.entry = count_entry, .arg = &bytes};
	struct err ignored;

	return tree_stream_run(
		       engine_driver(engine), DRIVER_TREE_LAYER, name, false, &sink, &ignored) < 0
		       ? 0
		       : (int64_t)bytes;
}

int layer_collect_drop_orphan(
	struct engine *engine, const char *name, bool is_stack, struct err *err)
{
	struct layer_file file = {.is_stack = is_stack};
	struct hold held;
	int r;

	snprintf(file.name, sizeof(file.name), "%s", name);
	if (!hold(engine, &file, &held))
		return err_set(err, ERR_NOT_FOUND, "layer %.12s is being brought anew", name);
	/* It may have become somebody's meanwhile. */
	r = store_layer_is_known(engine_store(engine), name, err);
	if (r == 0)
		r = drop_files(engine_driver(engine), &file, err);
	else if (r > 0)
		r = err_set(err, ERR_NOT_FOUND, "layer %.12s is no orphan any more", name);
	release(engine, &held);
	return r;
}

static int take_orphan(void *arg, const char *name, bool is_stack, struct err *err)
{
	struct collection *collection = arg;
	struct layer_file file = {.is_stack = is_stack};
	int r = 0;

	snprintf(file.name, sizeof(file.name), "%s", name);
	if (!is_stack)
		file.bytes = measure(collection->engine, name);
	if (!collection->order->is_dry)
		r = layer_collect_drop_orphan(collection->engine, name, is_stack, err);
	if (r == 0)
		count(collection, &file, true);
	return r == -ENOENT || (r < 0 && strcmp(err->code, DRIVER_LAYER_IN_USE) == 0) ? 0 : r;
}

static int collect(struct collection *collection, struct err *err)
{
	struct engine *engine = collection->engine;
	int r = 0;

	if (!collection->order->is_dry)
		r = store_layer_expire(engine_store(engine), &collection->expiry, err);
	if (r == 0)
		r = collect_kind(collection, true, err);
	if (r == 0)
		r = collect_kind(collection, false, err);
	if (r == 0 && collection->order->orphans)
		r = layer_collect_each_orphan(engine, take_orphan, collection, err);
	return r;
}

int layer_collect_run(struct engine *engine, const struct layer_collect_order *order,
	struct layer_collected *ret_collected, struct err *err)
{
	struct collection collection = {.engine = engine, .order = order};
	int64_t since_ms = templates_using_since_ms(engine);
	int r = capability_need(engine_driver(engine), DRIVER_LAYERS, err);

	if (r < 0)
		return r;
	collection.expiry.before_ms = store_clock_ms(engine_store(engine)) - order->unused_s * 1000;
	if (since_ms < collection.expiry.before_ms)
		collection.expiry.before_ms = since_ms;
	collection.expiry.cache_before_ms = order->keeps_cache ? 0 : collection.expiry.before_ms;
	r = collect(&collection, err);
	if (r == 0)
		*ret_collected = collection.collected;
	return r;
}

/* --- now and then --- */

struct layer_collector {
	struct engine *engine;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_stopping;
	uint64_t next_ms;
	uint64_t next_short_ms;
};

/* Removals that a crash, or a keeper that was away, cut short. */
static void settle(struct engine *engine)
{
	struct layer_file page[PAGE];
	char after[STORE_LAYER_NAME_LEN + 1] = "";
	struct err err;
	int found;

	do {
		found = store_layer_list_marked(engine_store(engine), after, page, PAGE, &err);
		for (int i = 0; i < found; i++) {
			struct hold held;

			memcpy(after, page[i].name, sizeof(after));
			if (!hold(engine, &page[i], &held))
				continue;
			/* A build may have taken it up again. */
			if (store_layer_is_marked(engine_store(engine), page[i].name, &err) > 0 &&
				remove_marked(engine, &page[i], &err) < 0)
				log_warning("layer %.12s: %s", page[i].name, err.message);
			release(engine, &held);
		}
	} while (found == PAGE);
	if (found < 0)
		log_warning("%s", err.message);
}

static bool is_stopping(struct layer_collector *collector)
{
	bool is_stopping;

	pthread_mutex_lock(&collector->lock);
	is_stopping = collector->is_stopping;
	pthread_mutex_unlock(&collector->lock);
	return is_stopping;
}

static void measure_all(struct layer_collector *collector)
{
	struct store *store = engine_store(collector->engine);
	struct layer_file page[PAGE];
	char after[STORE_LAYER_NAME_LEN + 1] = "";
	struct err err;
	int found;

	do {
		found = store_layer_list_unmeasured(store, after, page, PAGE, &err);
		for (int i = 0; i < found && !is_stopping(collector); i++) {
			int64_t bytes = measure(collector->engine, page[i].name);

			memcpy(after, page[i].name, sizeof(after));
			if (bytes > 0 &&
				store_layer_set_bytes(store, page[i].name, bytes, &err) < 0)
				log_warning("%s", err.message);
		}
	} while (found == PAGE && !is_stopping(collector));
}

static void collect_and_tell(struct engine *engine, int64_t unused_s, const char *why)
{
	const struct layer_collect_order order = {.unused_s = unused_s};
	struct layer_collected collected;
	struct err err;

	if (layer_collect_run(engine, &order, &collected, &err) < 0)
		log_warning("unused layers are not removed: %s", err.message);
	else if (collected.layers + collected.stacks > 0)
		log_info("removed %zu layers and %zu stacks that nothing uses, %llu MiB: %s",
			collected.layers, collected.stacks,
			(unsigned long long)collected.bytes >> 20, why);
}

static void make_round(struct layer_collector *collector)
{
	struct engine *engine = collector->engine;
	int64_t keep_s = templates_layer_retention_s(engine->config.templates);
	uint64_t now_ms = clock_steady_ms();

	if (disk_reserve_is_short(engine) && now_ms >= collector->next_short_ms) {
		collector->next_short_ms = now_ms + SHORT_EVERY_MS;
		collect_and_tell(engine, 0, "the disk of the host is full");
		templates_sweep_parts(engine);
	}
	if (now_ms < collector->next_ms)
		return;
	settle(engine);
	measure_all(collector);
	if (keep_s > 0)
		collect_and_tell(engine, keep_s, "they were not used for long");
	keep_s = keep_s > 0 && keep_s / 4 < EVERY_MAX_S ? keep_s / 4 + 1 : EVERY_MAX_S;
	collector->next_ms = clock_steady_ms() + (uint64_t)keep_s * 1000;
}

static void *run(void *arg)
{
	struct layer_collector *collector = arg;

	pthread_setname_np(pthread_self(), "layer-collect");
	while (!is_stopping(collector)) {
		struct timespec deadline;
		struct err ignored;
		int waited = 0;

		if (driver_check(engine_driver(collector->engine), &ignored) == 0)
			make_round(collector);
		clock_gettime(CLOCK_MONOTONIC, &deadline);
		deadline.tv_sec += ROUND_S;
		pthread_mutex_lock(&collector->lock);
		while (!collector->is_stopping && waited == 0)
			waited = pthread_cond_timedwait(
				&collector->wake, &collector->lock, &deadline);
		pthread_mutex_unlock(&collector->lock);
	}
	return NULL;
}

struct layer_collector *layer_collector_start(struct engine *engine)
{
	struct layer_collector *collector;
	pthread_condattr_t attr;

	if (!driver_can(engine_driver(engine), DRIVER_LAYERS))
		return NULL;
	collector = mem_new(sizeof(*collector));
	collector->engine = engine;
	pthread_mutex_init(&collector->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&collector->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&collector->thread, NULL, run, collector) != 0) {
		log_error("no thread removes unused layers");
		free(collector);
		return NULL;
	}
	return collector;
}

void layer_collector_stop(struct layer_collector *collector)
{
	if (!collector)
		return;
	pthread_mutex_lock(&collector->lock);
	collector->is_stopping = true;
	pthread_cond_broadcast(&collector->wake);
	pthread_mutex_unlock(&collector->lock);
	pthread_join(collector->thread, NULL);
	pthread_cond_destroy(&collector->wake);
	pthread_mutex_destroy(&collector->lock);
	free(collector);
}
