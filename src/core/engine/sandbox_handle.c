/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/sandbox_handle.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_state.h"
#include "core/output/output_budget.h"
#include "model/access/owner.h"
#include "store/access/store_quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *sandbox_id(const struct sandbox *sandbox)
{
	return sandbox->id;
}

struct engine *sandbox_engine(const struct sandbox *sandbox)
{
	return sandbox->engine;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct sandbox *)a)->id, ((const struct sandbox *)b)->id);
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
	atomic_fetch_add(&sandbox->refs, 1);
	return sandbox;
}

bool sandbox_handle_give_back_claim(struct sandbox *sandbox)
{
	struct quota_claim *claim = atomic_exchange(&sandbox->claim, NULL);

	if (!claim)
		return false;
	store_quota_give_back(sandbox->engine->config.store, claim);
	free(claim);
	return true;
}

static void free_sandbox(struct sandbox *sandbox)
{
	run_place_give_back(sandbox);
	sandbox_record_fini(&sandbox->record);
	output_budget_unref(sandbox->output);
	if (sandbox->history)
		atomic_fetch_sub(&sandbox->engine->histories, 1);
	(void)sandbox_handle_give_back_claim(sandbox);
	stats_history_free(sandbox->history);
	pthread_mutex_destroy(&sandbox->output_lock);
	pthread_mutex_destroy(&sandbox->life);
	pthread_mutex_destroy(&sandbox->logs);
	pthread_mutex_destroy(&sandbox->state);
	pthread_cond_destroy(&sandbox->changed);
	free(sandbox);
}

/* The last reference goes under the engine's lock, where a look-up could still find it. */
void sandbox_unref(struct sandbox *sandbox)
{
	struct engine *engine;
	int refs;

	if (!sandbox)
		return;
	refs = atomic_load(&sandbox->refs);
	while (refs > 1) {
		if (atomic_compare_exchange_weak(&sandbox->refs, &refs, refs - 1))
			return;
	}
	engine = sandbox->engine;
	pthread_mutex_lock(&engine->lock);
	if (atomic_fetch_sub(&sandbox->refs, 1) > 1) {
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	if (!sandbox->gone)
		tdelete(sandbox, &engine->sandboxes, compare);
	pthread_mutex_unlock(&engine->lock);
	free_sandbox(sandbox);
}

/* Looks one up that is in memory; the engine's lock is held. */
static struct sandbox *find(struct engine *engine, const char *id)
{
	struct sandbox key = {0}, **found;

	snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &engine->sandboxes, compare);
	return found ? sandbox_ref(*found) : NULL;
}

/* A handle with a reference for the caller; takes over the record. The engine's lock is held. */
static struct sandbox *make_handle(
	struct engine *engine, struct sandbox_record *record, bool living)
{
	struct sandbox *sandbox = mem_new(sizeof(*sandbox));
	pthread_condattr_t attr;

	sandbox->refs = 1;
	sandbox->engine = engine;
	memcpy(sandbox->id, record->id, sizeof(sandbox->id));
	pthread_mutex_init(&sandbox->output_lock, NULL);
	pthread_mutex_init(&sandbox->life, NULL);
	pthread_mutex_init(&sandbox->logs, NULL);
	pthread_mutex_init(&sandbox->state, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sandbox->changed, &attr);
	pthread_condattr_destroy(&attr);
	sandbox->record = *record;
	atomic_init(&sandbox->last_active_ms, record->last_active_at_ms);
	atomic_init(&sandbox->is_unowned, owner_is_pool(&record->owner));
	atomic_init(&sandbox->output_noted, OUTPUT_NOT_NOTED);
	/* Nobody can have it yet, so this succeeds, and is not against the order of locks. */
	if (living && pthread_mutex_trylock(&sandbox->life) != 0)
		abort();
	if (!tsearch(sandbox, &engine->sandboxes, compare))
		abort();
	return sandbox;
}

struct sandbox *sandbox_attach(struct engine *engine, struct sandbox_record *record)
{
	struct sandbox *sandbox;

	pthread_mutex_lock(&engine->lock);
	sandbox = find(engine, record->id);
	if (sandbox)
		sandbox_record_fini(record);
	else
		sandbox = make_handle(engine, record, false);
	pthread_mutex_unlock(&engine->lock);
	return sandbox;
}

void sandbox_handle_detach(struct sandbox *sandbox)
{
	struct engine *engine = sandbox->engine;

	pthread_mutex_lock(&engine->lock);
	if (!sandbox->gone)
		tdelete(sandbox, &engine->sandboxes, compare);
	pthread_mutex_lock(&sandbox->state);
	sandbox->gone = true;
	pthread_mutex_unlock(&sandbox->state);
	pthread_mutex_unlock(&engine->lock);
}

int sandbox_handle_forget(struct sandbox *sandbox,
	int (*remove_row)(struct store *store, const char *id, struct err *err), struct err *err)
{
	struct engine *engine = sandbox->engine;
	int r;

	pthread_mutex_lock(&engine->rows_lock);
	r = remove_row(engine->config.store, sandbox->id, err);
	if (r == 0)
		sandbox_handle_detach(sandbox);
	pthread_mutex_unlock(&engine->rows_lock);
	return r;
}

int sandbox_handle_new(struct engine *engine, struct sandbox_record *record,
	int (*add_row)(struct store *store, struct sandbox_record *record, struct err *err),
	struct sandbox **ret_sandbox, struct err *err)
{
	int r;

	pthread_mutex_lock(&engine->rows_lock);
	r = add_row(engine->config.store, record, err);
	if (r == 0) {
		pthread_mutex_lock(&engine->lock);
		engine->verbs->id_taken(engine, record);
		*ret_sandbox = make_handle(engine, record, true);
		pthread_mutex_unlock(&engine->lock);
	} else {
		sandbox_record_fini(record);
	}
	pthread_mutex_unlock(&engine->rows_lock);
	return r;
}

struct sandbox *sandbox_handle_find(struct engine *engine, const char *id)
{
	struct sandbox *sandbox;

	pthread_mutex_lock(&engine->lock);
	sandbox = find(engine, id);
	pthread_mutex_unlock(&engine->lock);
	return sandbox;
}

void engine_note_use(struct engine *engine, const char *id)
{
	struct sandbox *sandbox = sandbox_handle_find(engine, id);

	if (sandbox)
		sandbox_note_use(sandbox);
	sandbox_unref(sandbox);
}

void sandbox_enter(struct sandbox *sandbox)
{
	atomic_fetch_add(&sandbox->visitors, 1);
}

void sandbox_leave(struct sandbox *sandbox)
{
	sandbox_note_use(sandbox);
	if (sandbox->record.parent[0])
		engine_note_use(sandbox->engine, sandbox->record.parent);
	atomic_fetch_sub(&sandbox->visitors, 1);
}

int sandbox_use(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err)
{
	return sandbox->engine->verbs->use(sandbox, ret_link, err);
}

/* Collects references of all sandboxes in memory. */
struct sandbox_list {
	struct sandbox **sandboxes;
	size_t count, cap;
};

static void count_in(const void *node, VISIT visit, void *arg)
{
	struct sandbox_list *sandbox_list = arg;

	if (visit != postorder && visit != leaf)
		return;
	if (sandbox_list->count == sandbox_list->cap) {
		sandbox_list->cap = sandbox_list->cap ? sandbox_list->cap * 2 : 64;
		sandbox_list->sandboxes = realloc(
			sandbox_list->sandboxes, sandbox_list->cap * sizeof(struct sandbox *));
		if (!sandbox_list->sandboxes)
			abort();
	}
	sandbox_list->sandboxes[sandbox_list->count++] =
		sandbox_ref(*(struct sandbox *const *)node);
}

static struct sandbox_list list_sandboxes(struct engine *engine)
{
	struct sandbox_list sandbox_list = {0};

	pthread_mutex_lock(&engine->lock);
	twalk_r(engine->sandboxes, count_in, &sandbox_list);
	pthread_mutex_unlock(&engine->lock);
	return sandbox_list;
}

void engine_visit(
	struct engine *engine, void (*visit)(struct sandbox *sandbox, void *arg), void *arg)
{
	struct sandbox_list sandbox_list = list_sandboxes(engine);

	for (size_t i = 0; i < sandbox_list.count; i++) {
		visit(sandbox_list.sandboxes[i], arg);
		sandbox_unref(sandbox_list.sandboxes[i]);
	}
	free(sandbox_list.sandboxes);
}

struct sandbox **engine_list(struct engine *engine, size_t *ret_count)
{
	struct sandbox_list sandbox_list = list_sandboxes(engine);

	*ret_count = sandbox_list.count;
	return sandbox_list.sandboxes;
}

/* Reads the row and makes its handle while neither can come or go: the row cannot grow old meanwhile. */
static int load(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;
	int r = 0;

	pthread_mutex_lock(&engine->rows_lock);
	*ret_sandbox = sandbox_handle_find(engine, id);
	if (!*ret_sandbox) {
		r = store_sandbox_get(engine->config.store, owner, id, &record, err);
		if (r == 0)
			*ret_sandbox = sandbox_attach(engine, &record);
	}
	pthread_mutex_unlock(&engine->rows_lock);
	return r;
}

/* The same by name, which only the database knows. */
static int load_named(struct engine *engine, const struct owner *owner, const char *name,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;
	int r;

	pthread_mutex_lock(&engine->rows_lock);
	r = store_sandbox_find_name(engine->config.store, owner, name, &record, err);
	if (r == 0)
		*ret_sandbox = sandbox_attach(engine, &record);
	pthread_mutex_unlock(&engine->rows_lock);
	return r;
}

int sandbox_get(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox *sandbox;
	bool owned;
	int r;

	/* A name means something only among the sandboxes of one owner. */
	if (owner && sandbox_name_is_valid(id))
		return load_named(engine, owner, id, ret_sandbox, err);
	if (!id_is_valid(id))
		return sandbox_not_found(id, err);
	sandbox = sandbox_handle_find(engine, id);
	if (!sandbox) {
		r = load(engine, owner, id, &sandbox, err);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&sandbox->state);
	/* A member is reached through its sandbox alone (core/sandbox/member.h). */
	owned = !owner ||
		(sandbox_record_is_of(&sandbox->record, owner) && !sandbox->record.parent[0]);
	pthread_mutex_unlock(&sandbox->state);
	if (!owned) {
		sandbox_unref(sandbox);
		return sandbox_not_found(id, err);
	}
	*ret_sandbox = sandbox;
	return 0;
}

void sandbox_read(struct sandbox *sandbox, struct sandbox_record *ret_record)
{
	pthread_mutex_lock(&sandbox->state);
	sandbox_record_copy(ret_record, &sandbox->record);
	pthread_mutex_unlock(&sandbox->state);
	ret_record->last_active_at_ms = atomic_load(&sandbox->last_active_ms);
}

bool sandbox_read_walls(struct sandbox *sandbox, struct walls *ret_walls)
{
	bool is_up;

	pthread_mutex_lock(&sandbox->state);
	is_up = sandbox->record.status == SANDBOX_RUNNING ||
		sandbox->record.status == SANDBOX_PAUSED;
	if (is_up)
		*ret_walls = sandbox->walls;
	pthread_mutex_unlock(&sandbox->state);
	return is_up;
}

/* --- the output of its processes --- */

int sandbox_open_logs(struct sandbox *sandbox, int *ret_fd, struct err *err)
{
	int fd = openat(sandbox->engine->config.logs_fd, sandbox->id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return err_set(
			err, ERR_NOT_FOUND, "sandbox %s has no output of processes", sandbox->id);
	if (fd < 0)
		return err_sys(err, "open the directory for the output of sandbox %s", sandbox->id);
	*ret_fd = fd;
	return 0;
}

int sandbox_make_logs(struct sandbox *sandbox, int *ret_fd, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&sandbox->logs);
	if (sandbox->has_no_logs)
		r = sandbox_not_found(sandbox->id, err);
	else if (mkdirat(sandbox->engine->config.logs_fd, sandbox->id, 0700) < 0 && errno != EEXIST)
		r = err_sys(err, "make the directory for the output of sandbox %s", sandbox->id);
	else
		r = sandbox_open_logs(sandbox, ret_fd, err);
	pthread_mutex_unlock(&sandbox->logs);
	return r;
}

void engine_remove_logs(struct engine *engine, const char *sandbox_id)
{
	auto_fd int fd = openat(engine->config.logs_fd, sandbox_id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, 0);
	}
	closedir(dir);
	if (unlinkat(engine->config.logs_fd, sandbox_id, AT_REMOVEDIR) < 0)
		log_error("the output of sandbox %s stays: %s", sandbox_id, strerror(errno));
}

void sandbox_remove_logs(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->logs);
	sandbox->has_no_logs = true;
	pthread_mutex_unlock(&sandbox->logs);
	engine_remove_logs(sandbox->engine, sandbox->id);
}
