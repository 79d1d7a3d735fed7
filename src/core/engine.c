/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine.h"

#include "base/clock.h"
#include "core/sandbox_state.h"

#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct subscription {
	struct subscription *next;
	char sandbox_id[ID_LEN + 1];
	engine_event_fn event;
	void *arg;
};

struct store *engine_store(struct engine *engine)
{
	return engine->config.store;
}

struct driver *engine_driver(struct engine *engine)
{
	return engine->config.driver;
}

int engine_open(const struct engine_config *config, struct engine **ret_engine, struct err *err)
{
	struct engine *engine = mem_new(sizeof(*engine));
	pthread_condattr_t attr;
	int r;

	engine->config = *config;
	/* Sequence numbers go on growing over restarts, so that a client can tell old from new. */
	engine->event_sequence = (uint64_t)clock_wall_ms() * 1000;
	pthread_mutex_init(&engine->births, NULL);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->work, &attr);
	pthread_condattr_destroy(&attr);
	r = reactor_open(&engine->reactor, err);
	if (r == 0)
		r = reconcile(engine, err);
	if (r == 0) {
		r = -pthread_create(&engine->reaper, NULL, reaper_run, engine);
		engine->reaper_runs = r == 0;
		if (r < 0)
			err_from(err, r, "start the reaper");
	}
	if (r < 0) {
		engine_close(engine);
		return r;
	}
	*ret_engine = engine;
	return 0;
}

/* Collects references of all sandboxes in memory. */
struct census {
	struct sandbox **sandboxes;
	size_t count, cap;
};

static void count_in(const void *node, VISIT visit, void *arg)
{
	struct census *census = arg;

	if (visit != postorder && visit != leaf)
		return;
	if (census->count == census->cap) {
		census->cap = census->cap ? census->cap * 2 : 64;
		census->sandboxes =
			realloc(census->sandboxes, census->cap * sizeof(struct sandbox *));
		if (!census->sandboxes)
			abort();
	}
	census->sandboxes[census->count++] = sandbox_ref(*(struct sandbox *const *)node);
}

/* Cuts every link without ending what is behind it: the keeper holds on to the agents. */
static void let_go(struct engine *engine)
{
	struct census census = {0};

	pthread_mutex_lock(&engine->lock);
	twalk_r(engine->sandboxes, count_in, &census);
	pthread_mutex_unlock(&engine->lock);
	for (size_t i = 0; i < census.count; i++) {
		struct sandbox *sandbox = census.sandboxes[i];
		struct link *link;

		pthread_mutex_lock(&sandbox->state);
		sandbox->ending = true;
		link = sandbox->link ? link_ref(sandbox->link) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		if (link)
			link_close(link);
		link_unref(link);
	}
	for (size_t i = 0; i < census.count; i++) {
		struct sandbox *sandbox = census.sandboxes[i];

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
		sandbox_unref(sandbox);
	}
	free(census.sandboxes);
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->closing = true;
	pthread_cond_signal(&engine->work);
	pthread_mutex_unlock(&engine->lock);
	if (engine->reaper_runs)
		pthread_join(engine->reaper, NULL);
	if (engine->reactor)
		let_go(engine);
	reactor_close(engine->reactor);
	for (size_t i = 0; i < engine->lost_count; i++)
		sandbox_unref(engine->lost[i]);
	free(engine->lost);
	pthread_mutex_destroy(&engine->births);
	pthread_mutex_destroy(&engine->lock);
	pthread_cond_destroy(&engine->work);
	free(engine);
}

/* --- events --- */

struct subscription *engine_subscribe(
	struct engine *engine, const char *id, engine_event_fn event, void *arg)
{
	struct subscription *subscription = mem_new(sizeof(*subscription));

	snprintf(subscription->sandbox_id, sizeof(subscription->sandbox_id), "%s", id);
	subscription->event = event;
	subscription->arg = arg;
	pthread_mutex_lock(&engine->lock);
	subscription->next = engine->subscriptions;
	engine->subscriptions = subscription;
	pthread_mutex_unlock(&engine->lock);
	return subscription;
}

void engine_unsubscribe(struct engine *engine, struct subscription *subscription)
{
	pthread_mutex_lock(&engine->lock);
	for (struct subscription **at = &engine->subscriptions; *at; at = &(*at)->next) {
		if (*at == subscription) {
			*at = subscription->next;
			break;
		}
	}
	pthread_mutex_unlock(&engine->lock);
	free(subscription);
}

void sandbox_announce(struct sandbox *sandbox)
{
	struct engine *engine = sandbox->engine;
	char type[32], json[256], now[CLOCK_TEXT_LEN];
	const char *status;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->gone ? "deleted" : sandbox_status_name(sandbox->record.status);
	pthread_mutex_unlock(&sandbox->state);
	clock_format(clock_wall_ms(), now);
	snprintf(type, sizeof(type), "sandbox.%s", status);
	snprintf(json, sizeof(json), "{\"sandbox\":\"%s\",\"status\":\"%s\",\"at\":\"%s\"}",
		sandbox->id, status, now);
	pthread_mutex_lock(&engine->lock);
	engine->event_sequence++;
	for (struct subscription *s = engine->subscriptions; s; s = s->next) {
		if (strcmp(s->sandbox_id, sandbox->id) == 0)
			s->event(s->arg, engine->event_sequence, type, json);
	}
	pthread_mutex_unlock(&engine->lock);
}
