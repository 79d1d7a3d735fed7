/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/orphan.h"

#include "base/log.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct orphan_entry {
	struct orphan orphan;
	bool is_claimed; /* it is being adopted or purged */
};

static int not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "orphan_not_found", "list them with GET /v1/orphans",
		"there is no orphan %.32s", id);
}

/* The place of an id in the list, or where it would be. engine.lock is held, here and below. */
static size_t place_of(const struct engine *engine, const char *id)
{
	size_t at = 0;

	while (at < engine->orphan_count && strcmp(engine->orphans[at].orphan.id, id) < 0)
		at++;
	return at;
}

static struct orphan_entry *find(struct engine *engine, const char *id)
{
	size_t at = place_of(engine, id);

	if (at == engine->orphan_count || strcmp(engine->orphans[at].orphan.id, id) != 0)
		return NULL;
	return &engine->orphans[at];
}

static void forget(struct engine *engine, const char *id)
{
	struct orphan_entry *entry;

	pthread_mutex_lock(&engine->lock);
	entry = find(engine, id);
	if (entry) {
		size_t at = (size_t)(entry - engine->orphans);

		engine->orphan_count--;
		memmove(entry, entry + 1, (engine->orphan_count - at) * sizeof(*entry));
	}
	pthread_mutex_unlock(&engine->lock);
}

void orphan_note(struct engine *engine, const char *id)
{
	struct orphan_entry entry = {0};
	size_t at;

	snprintf(entry.orphan.id, sizeof(entry.orphan.id), "%s", id);
	log_warning("%s has files, but no row in the database: it is kept as an orphan; see "
		    "`sandlot ls --orphans`",
		id);
	pthread_mutex_lock(&engine->lock);
	if (engine->orphan_count == engine->orphan_cap) {
		engine->orphan_cap = engine->orphan_cap ? engine->orphan_cap * 2 : 16;
		engine->orphans = realloc(engine->orphans, engine->orphan_cap * sizeof(entry));
		if (!engine->orphans)
			abort();
	}
	at = place_of(engine, id);
	memmove(&engine->orphans[at + 1], &engine->orphans[at],
		(engine->orphan_count - at) * sizeof(entry));
	engine->orphans[at] = entry;
	engine->orphan_count++;
	pthread_mutex_unlock(&engine->lock);
}

size_t orphan_list(struct engine *engine, const char *after, struct orphan orphans[], size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&engine->lock);
	for (size_t at = place_of(engine, after); at < engine->orphan_count && count < max; at++) {
		if (strcmp(engine->orphans[at].orphan.id, after) != 0)
			orphans[count++] = engine->orphans[at].orphan;
	}
	pthread_mutex_unlock(&engine->lock);
	return count;
}

bool orphan_exists(struct engine *engine, const char *id)
{
	bool exists;

	pthread_mutex_lock(&engine->lock);
	exists = find(engine, id);
	pthread_mutex_unlock(&engine->lock);
	return exists;
}

/* The caller alone works on it until release. */
static int claim(struct engine *engine, const char *id, struct err *err)
{
	struct orphan_entry *entry;
	int r = 0;

	pthread_mutex_lock(&engine->lock);
	entry = find(engine, id);
	if (!entry)
		r = not_found(id, err);
	else if (entry->is_claimed)
		r = err_set(err, ERR_CONFLICT, "orphan %s is being adopted or purged", id);
	else
		entry->is_claimed = true;
	pthread_mutex_unlock(&engine->lock);
	return r;
}

static void release(struct engine *engine, const char *id)
{
	struct orphan_entry *entry;

	pthread_mutex_lock(&engine->lock);
	entry = find(engine, id);
	if (entry)
		entry->is_claimed = false;
	pthread_mutex_unlock(&engine->lock);
}

/* life of the new handle is held when it returns, as with every new one. */
static int make_rows(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct sandbox_record record;
	int r = driver->ops->is_stored(driver, draft->id, err);

	if (r == 0)
		r = not_found(draft->id, err);
	if (r < 0)
		return r;
	sandbox_record_copy(&record, draft);
	record.status = SANDBOX_STOPPED;
	record.created_at_ms = record.last_active_at_ms = store_clock_ms(engine->config.store);
	record.end = (struct termination){.reason = END_OPERATOR, .detail = "adopted"};
	return sandbox_handle_new(engine, &record, store_sandbox_hold, ret_sandbox, err);
}

int orphan_adopt(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	int r = claim(engine, draft->id, err);

	if (r < 0)
		return r;
	r = make_rows(engine, draft, ret_sandbox, err);
	if (r < 0) {
		release(engine, draft->id);
		return r;
	}
	forget(engine, draft->id);
	pthread_mutex_unlock(&(*ret_sandbox)->life);
	return 0;
}

static int remove_files(struct engine *engine, const char *id, struct err *err)
{
	struct driver *driver = engine->config.driver;
	int r = driver->ops->stop(driver, id, NULL, err);

	if (r == 0)
		r = driver->ops->clean(driver, id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);
	if (r == 0)
		engine_remove_logs(engine, id);
	return r;
}

int orphan_purge(struct engine *engine, const char *id, struct err *err)
{
	int r = claim(engine, id, err);

	if (r < 0)
		return r;
	r = remove_files(engine, id, err);
	if (r < 0)
		release(engine, id);
	else
		forget(engine, id);
	return r;
}
