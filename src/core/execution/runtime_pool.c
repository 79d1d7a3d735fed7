/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/runtime_pool.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/share_pool.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/execution/execution_request.h"
#include "core/execution/language.h"
#include "core/process/process_table.h"
#include "core/sandbox/sandbox_request.h"
#include "model/owner.h"
#include "model/template.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KINDS_MAX 24
#define IMPORTS_S 900 /* for so long one waits with imports that nobody asks for */
#define COUNT_MAX 64
#define PACE_MS	  20   /* between two that are made */
#define REST_MS	  50   /* after a claim */
#define FAILED_MS 5000 /* after one that could not be made, or while memory is scarce */

/* A runtime that waits. Its watch of the process tells when the runner is ready. */
struct spare {
	struct runtime_pool *pool;
	struct spare *next;
	struct runtime runtime;
	size_t kind;   /* index */
	bool is_ready; /* under the lock, as the next */
	bool has_ended;
	bool is_released;
};

/* What is to wait. Those of the setting never change; the others are by the imports that were asked for. */
struct kind {
	const struct language *language;
	char template_name[SANDBOX_TEMPLATE_MAX]; /* "": the default one */
	json_t *imports;			  /* NULL: of the setting */
	unsigned wanted;
	uint64_t asked_ms; /* by the steady clock */
};

struct runtime_pool {
	struct engine *engine;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	struct kind kinds[KINDS_MAX];
	size_t count; /* of kinds */
	struct spare *spares;
	uint64_t due_ms; /* before which none is made, after a claim; 0: at once */
	pthread_t thread;
	bool has_thread, is_closing;
};

/* --- the setting --- */

static int bad(const char *text, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_setting", "python=2,python@browser=1",
		"--runtime-pool %s must name python and javascript, each with a number up to %d, "
		"and may name a template that needs no image",
		text, COUNT_MAX);
}

static int read_part(struct runtime_pool *pool, char *part, const char *text, struct err *err)
{
	char *equals = strchr(part, '='), *at = strchr(part, '@');
	const struct language *language;
	struct kind *kind = &pool->kinds[pool->count];
	uint64_t number;

	if (!equals || (at && at > equals) || pool->count == KINDS_MAX / 2)
		return bad(text, err);
	*equals = '\0';
	if (at)
		*at++ = '\0';
	language = language_find(part);
	if (!language || language->is_plain || (at && !template_find(at)) ||
		number_parse(equals + 1, 0, COUNT_MAX, &number) < 0)
		return bad(text, err);
	*kind = (struct kind){.language = language, .wanted = (unsigned)number};
	snprintf(kind->template_name, sizeof(kind->template_name), "%s", at ? at : "");
	pool->count++;
	return 0;
}

int runtime_pool_new(const char *text, struct runtime_pool **ret_pool, struct err *err)
{
	struct runtime_pool *pool = mem_new(sizeof(*pool));
	auto_free char *copy = mem_strdup(text);
	char *rest = copy, *part;
	int r = 0;

	while (r == 0 && (part = strsep(&rest, ",")))
		r = part[0] ? read_part(pool, part, text, err) : 0;
	if (r < 0) {
		free(pool);
		return r;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	*ret_pool = pool;
	return 0;
}

/* --- making one --- */

static void on_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct spare *spare = arg;

	(void)data, (void)len;
	if (stream != 3)
		return;
	pthread_mutex_lock(&spare->pool->lock);
	spare->is_ready = true;
	pthread_mutex_unlock(&spare->pool->lock);
}

static void on_ended(void *arg, const struct process_end *end)
{
	struct spare *spare = arg;

	(void)end;
	pthread_mutex_lock(&spare->pool->lock);
	spare->has_ended = true;
	pthread_mutex_unlock(&spare->pool->lock);
}

/* The watch and the list each have it. */
static void on_release(void *arg)
{
	struct spare *spare = arg;
	struct runtime_pool *pool = spare->pool;
	bool is_last;

	pthread_mutex_lock(&pool->lock);
	is_last = spare->is_released;
	spare->is_released = true;
	pthread_mutex_unlock(&pool->lock);
	if (is_last)
		free(spare);
}

static const struct process_events events = {
	.output = on_output, .ended = on_ended, .release = on_release};

static void remove_runtime(struct engine *engine, struct runtime *runtime)
{
	char id[ID_LEN + 1] = "";
	struct err err;

	if (runtime->sandbox)
		snprintf(id, sizeof(id), "%s", sandbox_id(runtime->sandbox));
	process_unref(take_ptr(&runtime->process));
	sandbox_unref(take_ptr(&runtime->sandbox));
	if (id[0] && sandbox_request_purge_builder(engine, id, &err) < 0)
		log_error("a waiting interpreter: %s", err.message);
}

/* Gives up a spare that is in no list. */
static void drop(struct spare *spare)
{
	struct runtime runtime = spare->runtime;
	struct engine *engine = spare->pool->engine;

	spare->runtime = (struct runtime){0};
	if (runtime.process)
		process_unwatch(runtime.process, spare);
	on_release(spare);
	remove_runtime(engine, &runtime);
}

static int start(struct spare *spare, const struct kind *kind, struct err *err)
{
	struct runtime *runtime = &spare->runtime;
	struct execution_request request;
	int r = execution_request_wait(
		runtime->sandbox, kind->language, kind->imports, &request, err);

	if (r == 0)
		r = process_new(runtime->sandbox, &runtime->process, err);
	if (r == 0 && !process_watch(runtime->process, &events, spare))
		r = err_set(err, ERR_INTERNAL, "a new process has ended");
	if (r == 0)
		r = process_run(runtime->process, &request.command.spec, err);
	execution_request_fini(&request);
	return r;
}

static int make_spare(
	struct runtime_pool *pool, size_t index, const struct kind *kind, struct err *err)
{
	const struct caller caller = {.owner = owner_pool, .scopes = SCOPE_ADMIN};
	struct sandbox_spec spec = {.waits = CHOICE_YES,
		.template_name = kind->template_name[0] ? kind->template_name : NULL};
	struct sandbox_request_result result = {0};
	struct spare *spare;
	bool is_wanted;
	int r = sandbox_request_create_passing(pool->engine, &caller, &spec, &result, err);

	if (r != 0)
		return r < 0 ? r : err_set(err, ERR_UNAVAILABLE, "its image is not there");
	spare = mem_new(sizeof(*spare));
	*spare =
		(struct spare){.pool = pool, .runtime = {.sandbox = result.sandbox}, .kind = index};
	r = start(spare, kind, err);
	if (r < 0) {
		if (!spare->runtime.process)
			on_release(spare); /* there is no watch that has it */
		drop(spare);
		return r;
	}
	pthread_mutex_lock(&pool->lock);
	/* Its place may have become that of other imports meanwhile. */
	is_wanted = pool->kinds[index].imports == kind->imports;
	if (is_wanted) {
		spare->next = pool->spares;
		pool->spares = spare;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!is_wanted)
		drop(spare);
	return 0;
}

/* --- the thread --- */

/* Less than a tenth of the host's memory is left. */
static bool is_memory_scarce(void)
{
	auto_free char *line = NULL;
	unsigned long long total = 0, available = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		(void)!sscanf(line, "MemTotal: %llu", &total);
		(void)!sscanf(line, "MemAvailable: %llu", &available);
	}
	if (file)
		fclose(file);
	return total > 0 && available < total / 10;
}

static unsigned count_spares(const struct runtime_pool *pool, size_t kind)
{
	unsigned have = 0;

	for (const struct spare *at = pool->spares; at; at = at->next)
		have += at->kind == kind;
	return have;
}

/* Which kind lacks one, and a copy of it, with a reference to its imports; the lock is held. */
static bool find_missing(struct runtime_pool *pool, size_t *ret_index, struct kind *ret_kind)
{
	for (size_t i = 0; i < pool->count; i++) {
		if (count_spares(pool, i) < pool->kinds[i].wanted) {
			*ret_index = i;
			*ret_kind = pool->kinds[i];
			json_incref(ret_kind->imports);
			return true;
		}
	}
	return false;
}

/* Nobody has asked for them for a while; the lock is held. */
static void forget_imports(struct runtime_pool *pool)
{
	uint64_t now_ms = clock_steady_ms();

	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (kind->imports && now_ms - kind->asked_ms > IMPORTS_S * 1000u)
			kind->wanted = 0;
	}
}

/* Takes one out that has ended, or that is not wanted any more; the lock is held. */
static struct spare *take_ended(struct runtime_pool *pool)
{
	for (struct spare **at = &pool->spares; *at; at = &(*at)->next) {
		struct spare *spare = *at;

		if (spare->has_ended || pool->kinds[spare->kind].wanted == 0) {
			*at = spare->next;
			return spare;
		}
	}
	return NULL;
}

/* The lock is held. */
static void wait_ms(struct runtime_pool *pool, long ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
}

/* One step without the lock; how long to wait after it. */
static long step(
	struct runtime_pool *pool, struct spare *ended, size_t index, const struct kind *kind)
{
	struct err err;

	if (ended) {
		drop(ended);
		return FAILED_MS;
	}
	if (is_memory_scarce())
		return FAILED_MS;
	if (make_spare(pool, index, kind, &err) == 0)
		return PACE_MS;
	log_warning("no interpreter waits for %s: %s", kind->language->name, err.message);
	return FAILED_MS;
}

static void *fill(void *arg)
{
	struct runtime_pool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	while (!pool->is_closing) {
		struct spare *ended;
		struct kind kind = {0};
		size_t index = 0;
		long pause;

		forget_imports(pool);
		ended = take_ended(pool);
		if (!ended && !find_missing(pool, &index, &kind)) {
			wait_ms(pool, FAILED_MS);
			continue;
		}
		if (!ended && clock_steady_ms() < pool->due_ms) {
			wait_ms(pool, REST_MS);
			json_decref(kind.imports);
			continue;
		}
		pool->due_ms = 0;
		pthread_mutex_unlock(&pool->lock);
		pause = step(pool, ended, index, &kind);
		json_decref(kind.imports);
		pthread_mutex_lock(&pool->lock);
		if (!pool->is_closing)
			wait_ms(pool, pause);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

void runtime_pool_open(struct runtime_pool *pool, struct engine *engine)
{
	pool->engine = engine;
	if (pool->count > 0)
		pool->has_thread = pthread_create(&pool->thread, NULL, fill, pool) == 0;
}

void runtime_pool_close(struct runtime_pool *pool)
{
	struct spare *spare;

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->is_closing = true;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	if (pool->has_thread)
		pthread_join(pool->thread, NULL);
	while ((spare = pool->spares)) {
		pool->spares = spare->next;
		drop(spare);
	}
	/* The pool itself stays: a watch may still be about to tell it of an end. */
}

/* --- claims --- */

/* Whether it is of this language and template; imports apart. */
static bool is_alike(const struct kind *kind, const struct runtime_kind *asked)
{
	return strcmp(kind->language->name, asked->language) == 0 &&
	       strcmp(kind->template_name, asked->template_name ? asked->template_name : "") == 0;
}

static bool is_same(const struct kind *kind, const struct runtime_kind *asked)
{
	return is_alike(kind, asked) &&
	       (kind->imports ? asked->imports && json_equal(kind->imports, asked->imports)
			      : !asked->imports);
}

/* A place for another kind: one that nobody wants and of which none is left, or a new one. */
static struct kind *find_place(struct runtime_pool *pool)
{
	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (kind->imports && kind->wanted == 0 && count_spares(pool, i) == 0) {
			json_decref(kind->imports);
			return kind;
		}
	}
	return pool->count < KINDS_MAX ? &pool->kinds[pool->count++] : NULL;
}

/* The lock is held. When there is no place, the one that was asked for longest ago makes room for the next. */
static void want_locked(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	struct kind *oldest = NULL, *place, model = {0};

	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (is_same(kind, asked)) {
			kind->wanted = 1;
			kind->asked_ms = clock_steady_ms();
			return;
		}
		if (is_alike(kind, asked) && !kind->imports && kind->wanted > 0)
			model = *kind;
		if (kind->imports && (!oldest || kind->asked_ms < oldest->asked_ms))
			oldest = kind;
	}
	if (!model.language)
		return; /* the operator has none of these wait */
	place = find_place(pool);
	if (!place) {
		if (oldest)
			oldest->wanted = 0;
		return;
	}
	*place = model;
	place->imports = json_deep_copy(asked->imports);
	place->wanted = 1;
	place->asked_ms = clock_steady_ms();
	pthread_cond_broadcast(&pool->changed);
}

void runtime_pool_want(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	if (json_array_size(asked->imports) == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	want_locked(pool, asked);
	pthread_mutex_unlock(&pool->lock);
}

static struct spare *take_ready(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	struct spare *found = NULL;

	pthread_mutex_lock(&pool->lock);
	for (struct spare **at = &pool->spares; *at && !found; at = &(*at)->next) {
		struct spare *spare = *at;

		if (spare->is_ready && !spare->has_ended &&
			is_same(&pool->kinds[spare->kind], asked)) {
			found = spare;
			*at = spare->next;
			break;
		}
	}
	/* Making the next one now would take processors and the store from the one that is about to run. */
	if (found && pool->due_ms == 0)
		pool->due_ms = clock_steady_ms() + REST_MS;
	if (found)
		pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	return found;
}

/* life is held. */
static int give_locked(struct sandbox *sandbox, const struct owner *owner, struct err *err)
{
	struct share *place = NULL;
	int r = sandbox->gone ? sandbox_not_found(sandbox->id, err)
			      : run_place_take_for(sandbox->engine, owner, &place, err);

	if (r < 0)
		return r;
	r = store_sandbox_give(sandbox->engine->config.store, &sandbox->record, owner, err);
	if (r < 0) {
		share_give_back(place);
		return r;
	}
	pthread_mutex_lock(&sandbox->state);
	sandbox->record.owner = *owner;
	pthread_mutex_unlock(&sandbox->state);
	run_place_give_back(sandbox);
	sandbox->place = place;
	r = sandbox_network_give(sandbox, false, err);
	process_table_give(sandbox);
	return r;
}

int runtime_pool_claim(struct runtime_pool *pool, const struct owner *owner,
	const struct runtime_kind *kind, struct runtime *ret_runtime, struct err *err)
{
	struct runtime_kind bare = {kind->language, kind->template_name, NULL};
	struct spare *spare = NULL;
	struct sandbox *sandbox;
	int r;

	if (json_array_size(kind->imports) > 0) {
		runtime_pool_want(pool, kind);
		spare = take_ready(pool, kind);
	}
	if (!spare)
		spare = take_ready(pool, &bare);

	if (!spare)
		return 1;
	sandbox = spare->runtime.sandbox;
	pthread_mutex_lock(&sandbox->life);
	r = give_locked(sandbox, owner, err);
	pthread_mutex_unlock(&sandbox->life);
	if (r < 0) {
		drop(spare);
		return r;
	}
	*ret_runtime = spare->runtime;
	spare->runtime = (struct runtime){0};
	process_unwatch(ret_runtime->process, spare);
	on_release(spare);
	return 0;
}
