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
#include "core/template/templates_request.h"
#include "model/access/owner.h"
#include "model/template/template.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KINDS_MAX	24
#define LATELY_S	900 /* for so long those wait that nobody asks for any more, */
#define LATELY_MAX	12  /* at most so many, */
#define ALIKE_MAX	4   /* and of one kind so many */
#define BROKEN_S	300 /* for so long none is tried of a kind that did not come up */
#define COUNT_MAX	64
#define WARM_CPU_MILLIS 8000   /* of processors while it loads */
#define USUAL_TEMPLATE	"host" /* of those who name none */
#define PACE_MS		20     /* between two that are made */
#define REST_MS		50     /* after a claim */
#define FAILED_MS	5000   /* after one that could not be made, or while memory is scarce */

/* A runtime that waits. Its watch of the process tells when the runner is warm; then it gets the limits of an execution. */
struct spare {
	struct runtime_pool *pool;
	struct spare *next;
	struct runtime runtime;
	size_t kind;   /* index */
	bool is_warm;  /* under the lock, as the next */
	bool is_ready; /* it may be taken */
	bool has_ended;
	bool is_released;
};

/* What is to wait. Those of the setting never change; the others are what was lately asked for. */
struct kind {
	const struct language *language;
	char template_name[SANDBOX_TEMPLATE_MAX];
	struct owner viewer; /* whose template it is; of one that is everybody's: nobody */
	json_t *imports;     /* NULL: none */
	unsigned wanted;
	bool lasts;	    /* it is of the setting */
	uint64_t stamp;	    /* another one, when it becomes another kind */
	uint64_t asked_ms;  /* by the steady clock, as the next */
	uint64_t broken_ms; /* when one did not come up; 0: none */
};

struct runtime_pool {
	struct engine *engine;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	struct kind kinds[KINDS_MAX];
	size_t count; /* of kinds */
	uint64_t stamps;
	struct spare *spares;
	uint64_t due_ms;     /* before which none is made, after a claim; 0: at once */
	struct timer *timer; /* wakes the thread when that is over */
	pthread_t thread;
	bool is_auto; /* what is asked for is had wait for the next */
	bool has_thread, is_closing;
};

/* --- the setting --- */

static int bad(const char *text, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_setting", "auto,python=2,python@browser=1",
		"--runtime-pool %s must be none, or auto, or name languages that have contexts, "
		"each "
		"with a number up to %d, and may name a template that needs no image",
		text, COUNT_MAX);
}

static int read_part(struct runtime_pool *pool, char *part, const char *text, struct err *err)
{
	char *equals = strchr(part, '='), *at = strchr(part, '@');
	const struct language *language;
	struct kind *kind = &pool->kinds[pool->count];
	uint64_t number;

	if (strcmp(part, "none") == 0)
		return 0;
	if (strcmp(part, "auto") == 0) {
		pool->is_auto = true;
		return 0;
	}
	if (!equals || (at && at > equals) || pool->count == KINDS_MAX / 2)
		return bad(text, err);
	*equals = '\0';
	if (at)
		*at++ = '\0';
	language = language_find(part);
	if (!language || language->is_plain || (at && !template_find(at)) ||
		number_parse(equals + 1, 0, COUNT_MAX, &number) < 0)
		return bad(text, err);
	*kind = (struct kind){.language = language, .wanted = (unsigned)number, .lasts = true};
	snprintf(kind->template_name, sizeof(kind->template_name), "%s", at ? at : USUAL_TEMPLATE);
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
	if (!spare->is_warm)
		pthread_cond_broadcast(&spare->pool->changed);
	spare->is_warm = true;
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

/*
 * What it loads before its code comes is not the execution's: it has all processors for that, as long as nobody else wants
 * them, and then the limits of its sandbox.
 */
static int limit(struct spare *spare, bool is_warm, struct err *err)
{
	struct sandbox *sandbox = spare->runtime.sandbox;
	struct driver *driver = spare->pool->engine->config.driver;
	struct resources resources = sandbox->record.resources;
	int r;

	if (!driver_can(driver, DRIVER_LIVE_RESIZE))
		return 0;
	if (!is_warm && resources.cpu_millis < WARM_CPU_MILLIS)
		resources.cpu_millis = WARM_CPU_MILLIS;
	pthread_mutex_lock(&sandbox->life);
	r = driver->ops->set_limits(driver, sandbox->id, &resources, !is_warm, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

static int start(struct spare *spare, const struct kind *kind, struct err *err)
{
	struct runtime *runtime = &spare->runtime;
	struct execution_request request;
	int r = execution_request_wait(
		runtime->sandbox, kind->language, kind->imports, &request, err);

	if (r == 0)
		r = limit(spare, false, err);
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
	struct sandbox *sandbox;
	struct spare *spare;
	bool is_wanted;
	int r = sandbox_request_create_waiting(
		pool->engine, &kind->viewer, kind->template_name, &sandbox, err);

	if (r < 0)
		return r;
	spare = mem_new(sizeof(*spare));
	*spare = (struct spare){.pool = pool, .runtime = {.sandbox = sandbox}, .kind = index};
	r = start(spare, kind, err);
	if (r < 0) {
		if (!spare->runtime.process)
			on_release(spare); /* there is no watch that has it */
		drop(spare);
		return r;
	}
	pthread_mutex_lock(&pool->lock);
	/* Its place may have become that of another kind meanwhile. */
	is_wanted = pool->kinds[index].stamp == kind->stamp;
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
	uint64_t now_ms = clock_steady_ms();

	for (size_t i = 0; i < pool->count; i++) {
		const struct kind *kind = &pool->kinds[i];

		/* One that does not come up must not keep the others waiting. */
		if (kind->broken_ms && now_ms - kind->broken_ms < FAILED_MS)
			continue;
		if (count_spares(pool, i) < kind->wanted) {
			*ret_index = i;
			*ret_kind = pool->kinds[i];
			json_incref(ret_kind->imports);
			return true;
		}
	}
	return false;
}

/* Nobody has asked for them for a while, or memory is scarce; the lock is held. */
static void forget_some(struct runtime_pool *pool, bool is_scarce)
{
	uint64_t now_ms = clock_steady_ms();

	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (!kind->lasts && (is_scarce || now_ms - kind->asked_ms > LATELY_S * 1000u))
			kind->wanted = 0;
	}
}

/* One did not come up: its template lacks the interpreter, say. The lock is held. */
static void note_broken(struct kind *kind)
{
	if (!kind->lasts)
		kind->wanted = 0;
	kind->broken_ms = clock_steady_ms();
}

/* Takes one out that has ended, or that is not wanted any more; the lock is held. */
static struct spare *take_ended(struct runtime_pool *pool)
{
	for (struct spare **at = &pool->spares; *at; at = &(*at)->next) {
		struct spare *spare = *at;

		if (spare->has_ended || pool->kinds[spare->kind].wanted == 0) {
			*at = spare->next;
			if (spare->has_ended)
				note_broken(&pool->kinds[spare->kind]);
			return spare;
		}
	}
	return NULL;
}

/* One that is warm and has not got its limits; the lock is held. Nobody takes it out before it has. */
static struct spare *find_warm(struct runtime_pool *pool)
{
	struct spare *found = pool->spares;

	while (found && (!found->is_warm || found->is_ready || found->has_ended))
		found = found->next;
	return found;
}

/* Without its limits it must not run code. */
static void make_ready(struct spare *spare)
{
	struct err err;
	int r = limit(spare, true, &err);

	if (r < 0)
		log_warning("an interpreter that waits: %s", err.message);
	pthread_mutex_lock(&spare->pool->lock);
	spare->is_ready = r == 0;
	spare->has_ended |= r < 0;
	pthread_mutex_unlock(&spare->pool->lock);
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
static long step(struct runtime_pool *pool, struct spare *ended, struct spare *warm, size_t index,
	const struct kind *kind)
{
	struct err err;

	if (warm) {
		make_ready(warm);
		return 0;
	}
	if (ended) {
		drop(ended);
		return PACE_MS;
	}
	if (make_spare(pool, index, kind, &err) == 0)
		return PACE_MS;
	log_warning("no interpreter waits for %s: %s", kind->language->name, err.message);
	pthread_mutex_lock(&pool->lock);
	if (pool->kinds[index].stamp == kind->stamp)
		note_broken(&pool->kinds[index]);
	pthread_mutex_unlock(&pool->lock);
	return PACE_MS;
}

static void *fill(void *arg)
{
	struct runtime_pool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	while (!pool->is_closing) {
		struct spare *ended, *warm;
		struct kind kind = {0};
		size_t index = 0;
		bool is_scarce;
		long pause;

		pthread_mutex_unlock(&pool->lock);
		is_scarce = is_memory_scarce();
		pthread_mutex_lock(&pool->lock);
		forget_some(pool, is_scarce);
		warm = find_warm(pool);
		ended = warm ? NULL : take_ended(pool);
		if (!warm && !ended && (is_scarce || !find_missing(pool, &index, &kind))) {
			wait_ms(pool, FAILED_MS);
			continue;
		}
		if (!warm && !ended && clock_steady_ms() < pool->due_ms) {
			wait_ms(pool, REST_MS);
			json_decref(kind.imports);
			continue;
		}
		if (!warm)
			pool->due_ms = 0;
		pthread_mutex_unlock(&pool->lock);
		pause = step(pool, ended, warm, index, &kind);
		json_decref(kind.imports);
		pthread_mutex_lock(&pool->lock);
		if (!pool->is_closing && pause > 0)
			wait_ms(pool, pause);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void on_due(void *arg)
{
	struct runtime_pool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

void runtime_pool_open(struct runtime_pool *pool, struct engine *engine)
{
	pool->engine = engine;
	pool->timer = engine_open_timer(engine, on_due, NULL, pool);
	if (pool->count > 0 || pool->is_auto)
		pool->has_thread = pthread_create(&pool->thread, NULL, fill, pool) == 0;
}

void runtime_pool_close(struct runtime_pool *pool)
{
	struct spare *spare;

	if (!pool)
		return;
	timer_close(take_ptr(&pool->timer));
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
	const char *name = asked->template_name ? asked->template_name : USUAL_TEMPLATE;

	return strcmp(kind->language->name, asked->language) == 0 &&
	       strcmp(kind->template_name, name) == 0 &&
	       (template_find(name) || owner_equals(&kind->viewer, asked->owner));
}

static bool is_same(const struct kind *kind, const struct runtime_kind *asked)
{
	return is_alike(kind, asked) &&
	       (kind->imports ? asked->imports && json_equal(kind->imports, asked->imports)
			      : json_array_size(asked->imports) == 0);
}

/* A place for another kind: one that nobody wants and of which none is left, or a new one. */
static struct kind *find_place(struct runtime_pool *pool)
{
	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (!kind->lasts && kind->wanted == 0 && count_spares(pool, i) == 0) {
			json_decref(kind->imports);
			return kind;
		}
	}
	return pool->count < KINDS_MAX ? &pool->kinds[pool->count++] : NULL;
}

/* How many are to wait that the setting does not name. */
static unsigned count_lately(const struct runtime_pool *pool)
{
	unsigned count = 0;

	for (size_t i = 0; i < pool->count; i++)
		count += pool->kinds[i].lasts ? 0 : pool->kinds[i].wanted;
	return count;
}

/* Whether the operator has such ones wait when they are asked for. */
static bool may_wait(const struct runtime_pool *pool, const struct runtime_kind *asked)
{
	for (size_t i = 0; i < pool->count; i++) {
		const struct kind *kind = &pool->kinds[i];

		if (kind->lasts && kind->wanted > 0 && is_alike(kind, asked))
			return true;
	}
	return pool->is_auto;
}

/* Whether a kind serves calls of a certain sort only. */
static bool is_special(const struct kind *kind)
{
	return kind->imports || strcmp(kind->template_name, USUAL_TEMPLATE) != 0;
}

/* Which of two kinds goes without: a special one, so that one owner with many of them does not cost the others theirs;
 * else the one that was asked for longest ago. */
static bool goes_first(const struct kind *kind, const struct kind *other)
{
	if (is_special(kind) != is_special(other))
		return is_special(kind);
	return kind->asked_ms < other->asked_ms;
}

/* Makes room for one more. */
static void make_room(struct runtime_pool *pool)
{
	struct kind *first = NULL;

	for (size_t i = 0; i < pool->count; i++) {
		struct kind *kind = &pool->kinds[i];

		if (!kind->lasts && kind->wanted > 0 && (!first || goes_first(kind, first)))
			first = kind;
	}
	if (first)
		first->wanted = 0;
}

static struct kind *add_kind(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	const char *name = asked->template_name ? asked->template_name : USUAL_TEMPLATE;
	const struct language *language = language_find(asked->language);
	struct kind *place;

	if (!language || language->is_plain || strlen(name) >= SANDBOX_TEMPLATE_MAX ||
		!may_wait(pool, asked))
		return NULL;
	if (count_lately(pool) >= LATELY_MAX)
		make_room(pool);
	place = find_place(pool);
	if (!place) {
		make_room(pool); /* for the next */
		return NULL;
	}
	*place = (struct kind){.language = language,
		.imports =
			json_array_size(asked->imports) > 0 ? json_deep_copy(asked->imports) : NULL,
		.stamp = ++pool->stamps};
	snprintf(place->template_name, sizeof(place->template_name), "%s", name);
	if (!template_find(name))
		place->viewer = *asked->owner;
	return place;
}

static struct kind *find_kind(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	for (size_t i = 0; i < pool->count; i++) {
		if (is_same(&pool->kinds[i], asked))
			return &pool->kinds[i];
	}
	return NULL;
}

/* Somebody asks for one of them, and finds none (is_missed): so many were not enough. The lock is held. */
static void note_asked(struct runtime_pool *pool, struct kind *kind, bool is_missed)
{
	uint64_t now_ms = clock_steady_ms();
	unsigned before;

	if (!kind || kind->lasts)
		return;
	if (kind->broken_ms && now_ms - kind->broken_ms < BROKEN_S * 1000u)
		return;
	before = kind->wanted;
	if (kind->wanted == 0)
		kind->wanted = 1;
	else if (is_missed && kind->wanted < ALIKE_MAX && count_lately(pool) < LATELY_MAX)
		kind->wanted++;
	kind->asked_ms = now_ms;
	if (is_missed || kind->wanted != before)
		pthread_cond_broadcast(&pool->changed);
}

void runtime_pool_want(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	struct kind *kind;

	pthread_mutex_lock(&pool->lock);
	kind = find_kind(pool, asked);
	note_asked(pool, kind ? kind : add_kind(pool, asked), false);
	pthread_mutex_unlock(&pool->lock);
}

static struct spare *take_ready(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	struct spare **place = NULL, *found;

	pthread_mutex_lock(&pool->lock);
	/* The last in the list is the oldest: others may still load what many ask for. */
	for (struct spare **at = &pool->spares; *at; at = &(*at)->next) {
		if ((*at)->is_ready && !(*at)->has_ended &&
			is_same(&pool->kinds[(*at)->kind], asked))
			place = at;
	}
	found = place ? *place : NULL;
	if (found)
		*place = found->next;
	/* Making the next one now, or even waking the thread that does, would take processors and the store from the one
	 * that is about to run. */
	if (found && pool->due_ms == 0) {
		pool->due_ms = clock_steady_ms() + REST_MS;
		if (pool->timer)
			timer_set(pool->timer, REST_MS);
	}
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
	r = sandbox_lend(sandbox, owner, err);
	if (r < 0) {
		share_give_back(place);
		return r;
	}
	run_place_give_back(sandbox);
	sandbox->place = place;
	sandbox_network_give(sandbox, false);
	process_table_give(sandbox);
	return r;
}

/* What a sandbox has of an image is that and more: what was found in it on the first start. */
static bool is_part_of(json_t *image, const json_t *taken)
{
	const char *name;
	json_t *value;

	json_object_foreach(image, name, value)
	{
		if (!json_equal(value, json_object_get(taken, name)))
			return false;
	}
	return !json_object_get(taken, "options") == !json_object_get(image, "options");
}

/* Whether it was made of the template as it is now; that of an owner may have been built anew, or be gone. */
static bool is_current(
	struct runtime_pool *pool, const struct spare *spare, const struct runtime_kind *asked)
{
	struct sandbox *sandbox = spare->runtime.sandbox;
	json_t *image = NULL;
	struct err ignored;
	bool is_same_image;

	if (!asked->template_name || template_find(asked->template_name))
		return true;
	if (templates_look(pool->engine, asked->owner, asked->template_name, &image, &ignored) < 0)
		return false;
	pthread_mutex_lock(&sandbox->state);
	is_same_image = is_part_of(image, sandbox->record.image);
	pthread_mutex_unlock(&sandbox->state);
	json_decref(image);
	return is_same_image;
}

/* One that waits for this, also without the imports that are asked for. */
static struct spare *find_spare(struct runtime_pool *pool, const struct runtime_kind *asked)
{
	struct runtime_kind bare = {asked->owner, asked->language, asked->template_name, NULL};
	struct spare *spare = take_ready(pool, asked);
	bool is_missed = !spare;

	if (!spare && json_array_size(asked->imports) > 0)
		spare = take_ready(pool, &bare);
	pthread_mutex_lock(&pool->lock);
	note_asked(pool, find_kind(pool, asked), is_missed);
	pthread_mutex_unlock(&pool->lock);
	if (spare && !is_current(pool, spare, asked))
		drop(take_ptr(&spare));
	return spare;
}

int runtime_pool_claim(struct runtime_pool *pool, const struct runtime_kind *kind,
	struct runtime *ret_runtime, struct err *err)
{
	struct spare *spare = find_spare(pool, kind);
	struct sandbox *sandbox;
	int r;

	if (!spare)
		return 1;
	sandbox = spare->runtime.sandbox;
	pthread_mutex_lock(&sandbox->life);
	r = give_locked(sandbox, kind->owner, err);
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
