/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot/changes.h"

#include "base/path_order.h"
#include "core/engine/capability.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/sandbox_run.h"
#include "core/snapshot/snapshots.h"
#include "core/template/image/tree_stream.h"
#include "wire/layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORKSPACE "/workspace/"

/* The two trees of a sandbox, in the order in which they are told. */
static const struct part {
	const char *prefix;
	bool is_workspace;
	enum driver_tree now, then;
	enum baseline_part baseline;
} parts[] = {
	{"/", false, DRIVER_TREE_CHANGES, DRIVER_TREE_SNAPSHOT_CHANGES, BASELINE_SYSTEM},
	{WORKSPACE, true, DRIVER_TREE_WORKSPACE, DRIVER_TREE_SNAPSHOT_WORKSPACE,
		BASELINE_WORKSPACE},
};

/* What a tree says of a path. */
enum state {
	STATE_GONE,    /* it is not there, though it was at the creation */
	STATE_NEW,     /* it is there, and was not at the creation */
	STATE_OTHER,   /* it was there, but something else */
	STATE_ON_PATH, /* a directory that was there too */
};

struct side {
	struct tree_stream *stream; /* NULL: as its template is */
	const struct layer_entry *entry;
	enum state state;
	char last[LAYER_PATH_MAX]; /* the path before */
	char gone[LAYER_PATH_MAX]; /* the last one that is gone */
};

struct comparison {
	const struct changes_query *query;
	const struct part *part;
	struct side then, now;
	char deleted[LAYER_PATH_MAX]; /* the last one that was told */
	bool is_done;
};

/* --- the entries of one tree --- */

/* Places of mounts: what was written there is not the overlay's. */
static bool is_systems(const char *path)
{
	static const char *const others[] = {"dev", "proc", "sys", "workspace"};

	for (size_t i = 0; i < array_len(others); i++) {
		if (strcmp(path, others[i]) == 0 || path_is_below(path, others[i]))
			return false;
	}
	return true;
}

static bool is_made_at_creation(const char *path)
{
	return strcmp(path, "agent_workspace") == 0 || strcmp(path, "outputs") == 0 ||
	       strcmp(path, "project_files") == 0;
}

static enum state state_of(const struct part *part, const struct layer_entry *entry)
{
	if (entry->kind == LAYER_WHITEOUT)
		return STATE_GONE;
	if (part->is_workspace)
		return is_made_at_creation(entry->path) ? STATE_ON_PATH : STATE_NEW;
	if (entry->below == LAYER_BELOW_NONE)
		return STATE_NEW;
	return entry->below == LAYER_BELOW_SAME ? STATE_ON_PATH : STATE_OTHER;
}

static int advance(const struct part *part, struct side *side, struct err *err)
{
	const struct layer_entry *entry;
	int r;

	if (!side->stream)
		return 0;
	do {
		r = tree_stream_next(side->stream, &side->entry, err);
		entry = side->entry;
		if (r <= 0)
			return r;
		/* The order is what the comparison rests on. */
		if (side->last[0] && path_order(entry->path, side->last) <= 0)
			return err_set(err, ERR_INTERNAL, "the reader of files says nonsense");
		snprintf(side->last, sizeof(side->last), "%s", entry->path);
	} while (!entry->path[0] || entry->kind == LAYER_OPAQUE ||
		 (!part->is_workspace && !is_systems(entry->path)));
	side->state = state_of(part, entry);
	if (side->state == STATE_GONE)
		snprintf(side->gone, sizeof(side->gone), "%s", entry->path);
	return 0;
}

static bool is_hidden(const struct side *side, const char *path)
{
	return side->gone[0] && path_is_below(path, side->gone);
}

/* --- the difference --- */

static void tell(
	struct comparison *comparison, enum change_kind kind, const char *path, uint64_t size)
{
	const struct changes_query *query = comparison->query;
	char full[LAYER_PATH_MAX + sizeof(WORKSPACE)];

	if (kind == CHANGE_DELETED) {
		if (comparison->deleted[0] && path_is_below(path, comparison->deleted))
			return;
		snprintf(comparison->deleted, sizeof(comparison->deleted), "%s", path);
	}
	snprintf(full, sizeof(full), "%s%s", comparison->part->prefix, path);
	if (query->after[0] && path_order(full, query->after) <= 0)
		return;
	comparison->is_done = !query->each(
		&(struct change){.kind = kind, .path = full, .size = size}, query->arg);
}

/* The sandbox has nothing to say of it: it is as at the creation, or in a directory that is gone. */
static void tell_then_only(struct comparison *comparison)
{
	const struct side *then = &comparison->then;
	const char *path = then->entry->path;
	bool is_gone = then->state == STATE_NEW || is_hidden(&comparison->now, path);

	if (then->state == STATE_GONE && !is_gone)
		tell(comparison, CHANGE_ADDED, path, then->entry->size);
	else if (then->state != STATE_GONE && is_gone)
		tell(comparison, CHANGE_DELETED, path, then->entry->size);
	else if (then->state == STATE_OTHER)
		tell(comparison, CHANGE_MODIFIED, path, then->entry->size);
}

/* The snapshot has nothing to say of it. */
static void tell_now_only(struct comparison *comparison)
{
	const struct side *now = &comparison->now;
	const char *path = now->entry->path;
	bool was_gone = is_hidden(&comparison->then, path);

	if (now->state == STATE_GONE) {
		if (!was_gone)
			tell(comparison, CHANGE_DELETED, path, now->entry->size);
	} else if (now->state == STATE_NEW || was_gone) {
		tell(comparison, CHANGE_ADDED, path, now->entry->size);
	} else if (now->state == STATE_OTHER) {
		tell(comparison, CHANGE_MODIFIED, path, now->entry->size);
	}
}

static bool is_changed(const struct layer_entry *a, const struct layer_entry *b)
{
	bool is_directory = a->kind == LAYER_DIRECTORY;

	if (is_directory != (b->kind == LAYER_DIRECTORY) || a->mode != b->mode ||
		a->uid != b->uid || a->gid != b->gid)
		return true;
	return !is_directory &&
	       (a->inode != b->inode || a->changed_ns != b->changed_ns || a->size != b->size);
}

static void tell_both(struct comparison *comparison)
{
	const struct side *then = &comparison->then, *now = &comparison->now;
	const char *path = now->entry->path;

	if (then->state == STATE_GONE && now->state == STATE_GONE)
		return;
	if (now->state == STATE_GONE)
		tell(comparison, CHANGE_DELETED, path, then->entry->size);
	else if (then->state == STATE_GONE)
		tell(comparison, CHANGE_ADDED, path, now->entry->size);
	else if (is_changed(then->entry, now->entry))
		tell(comparison, CHANGE_MODIFIED, path, now->entry->size);
}

static int compare(struct comparison *comparison, struct err *err)
{
	const struct part *part = comparison->part;
	struct side *then = &comparison->then, *now = &comparison->now;
	int r = advance(part, then, err);

	if (r == 0)
		r = advance(part, now, err);
	while (r == 0 && (then->entry || now->entry) && !comparison->is_done) {
		int order = !then->entry  ? 1
			    : !now->entry ? -1
					  : path_order(then->entry->path, now->entry->path);

		if (order < 0)
			tell_then_only(comparison);
		else if (order > 0)
			tell_now_only(comparison);
		else
			tell_both(comparison);
		if (order <= 0)
			r = advance(part, then, err);
		if (r == 0 && order >= 0)
			r = advance(part, now, err);
	}
	return r;
}

static int find_in(struct sandbox *sandbox, const struct changes_query *query,
	const struct part *part, const char *stack, bool *ret_is_done, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	auto_free struct comparison *comparison = mem_new(sizeof(*comparison));
	auto_(tree_stream_closep) struct tree_stream *then = NULL, *now = NULL;
	int r = 0;

	if (query->since)
		r = tree_stream_open(driver, part->then, query->since->id, stack, &then, err);
	else
		then = baseline_open(sandbox->engine, sandbox->id, part->baseline);
	if (r == 0)
		r = tree_stream_open(driver, part->now, sandbox->id, stack, &now, err);
	if (r < 0)
		return r;
	comparison->query = query;
	comparison->part = part;
	comparison->then.stream = then;
	comparison->now.stream = now;
	r = compare(comparison, err);
	*ret_is_done = comparison->is_done;
	return r;
}

static int find_all(struct sandbox *sandbox, const struct changes_query *query, struct err *err)
{
	struct sandbox_record record;
	bool is_done = false;
	const char *stack;
	int r = 0;

	sandbox_read(sandbox, &record);
	stack = snapshots_stack(record.image);
	for (size_t i = 0; r == 0 && !is_done && i < array_len(parts); i++) {
		const struct part *part = &parts[i];

		/* The system has no path like that. */
		if (part->is_workspace || strncmp(query->after, WORKSPACE, strlen(WORKSPACE)) != 0)
			r = find_in(sandbox, query, part, stack, &is_done, err);
	}
	sandbox_record_fini(&record);
	return r;
}

int changes_find(struct sandbox *sandbox, const struct changes_query *query, struct err *err)
{
	bool is_up;
	int r = capability_need(sandbox->engine->config.driver, DRIVER_LAYERS, err);

	if (r == 0 && query->since)
		r = snapshots_check_fit(sandbox, query->since, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->life);
	sandbox_run_settle(sandbox);
	is_up = sandbox_seems_up(sandbox);
	/* The disk of one that is stopped is mounted for the readers: no start meanwhile. */
	if (sandbox->gone)
		r = sandbox_not_found(sandbox->id, err);
	else if (!is_up)
		r = find_all(sandbox, query, err);
	pthread_mutex_unlock(&sandbox->life);
	return r == 0 && is_up ? find_all(sandbox, query, err) : r;
}
