/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/alarm.h"
#include "core/governor.h"
#include "core/network.h"
#include "core/port_watch.h"
#include "core/roll.h"
#include "core/sandbox_state.h"
#include "core/scribe.h"
#include "core/starter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MIN_MS 10000 /* used less than this ago is not idle, however short memory is */

struct subscription {
	struct subscription *next;
	char sandbox_id[ID_LEN + 1]; /* empty: it is over */
	struct owner owner;
	engine_event_fn event;
	void *arg;
	struct port_watch *ports;
};

struct store *engine_store(struct engine *engine)
{
	return engine->config.store;
}

struct driver *engine_driver(struct engine *engine)
{
	return engine->config.driver;
}

int engine_alarm(struct engine *engine, uint64_t ms, void (*ring)(void *arg),
	void (*release)(void *arg), void *arg, struct alarm **ret_alarm, struct err *err)
{
	return alarm_open(engine->reactor, ms, ring, release, arg, ret_alarm, err);
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
		r = scribe_open(&engine->scribe, err);
	if (r == 0)
		r = governor_open(engine->reactor, &engine->governor, err);
	if (r == 0)
		r = egress_open(&(struct egress_config){.resolver = config->resolver,
					.vault = config->vault,
					.denied = network_announce_denial,
					.arg = engine},
			&engine->egress, err);
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

static struct census take_census(struct engine *engine)
{
	struct census census = {0};

	pthread_mutex_lock(&engine->lock);
	twalk_r(engine->sandboxes, count_in, &census);
	pthread_mutex_unlock(&engine->lock);
	return census;
}

static bool is_idle(struct sandbox *sandbox)
{
	bool runs;

	pthread_mutex_lock(&sandbox->state);
	runs = sandbox->record.status == SANDBOX_RUNNING && sandbox->link && !sandbox->ending;
	pthread_mutex_unlock(&sandbox->state);
	return runs && clock_wall_ms() - atomic_load(&sandbox->last_active_ms) > IDLE_MIN_MS &&
	       !sandbox_is_occupied(sandbox);
}

struct sandbox *engine_find_idlest(struct engine *engine)
{
	struct sandbox *idlest = NULL;
	struct census census = take_census(engine);

	for (size_t i = 0; i < census.count; i++) {
		struct sandbox *sandbox = census.sandboxes[i];

		if (is_idle(sandbox) && (!idlest || atomic_load(&sandbox->last_active_ms) <
							    atomic_load(&idlest->last_active_ms))) {
			sandbox_unref(idlest);
			idlest = sandbox;
		} else {
			sandbox_unref(sandbox);
		}
	}
	free(census.sandboxes);
	return idlest;
}

/* Cuts every link without ending what is behind it: the keeper holds on to the agents. */
static void let_go(struct engine *engine)
{
	struct census census = take_census(engine);

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
		starter_leave(sandbox);
		network_close(sandbox);
		roll_let_go(sandbox);
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
	egress_close(engine->egress);
	scribe_close(engine->scribe);
	governor_close(engine->governor);
	reactor_close(engine->reactor);
	for (size_t i = 0; i < engine->lost_count; i++)
		sandbox_unref(engine->lost[i]);
	free(engine->lost);
	pthread_mutex_destroy(&engine->births);
	pthread_mutex_destroy(&engine->lock);
	pthread_cond_destroy(&engine->work);
	free(engine);
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

/* --- events --- */

/* engine.lock is held. */
static void end_subscription(struct subscription *subscription)
{
	subscription->sandbox_id[0] = '\0';
	port_watch_leave(take_ptr(&subscription->ports));
	subscription->event(subscription->arg, 0, NULL, NULL);
}

struct subscription *engine_subscribe(struct sandbox *sandbox, engine_event_fn event, void *arg)
{
	struct subscription *subscription = mem_new(sizeof(*subscription));
	struct engine *engine = sandbox->engine;

	memcpy(subscription->sandbox_id, sandbox->id, sizeof(subscription->sandbox_id));
	subscription->event = event;
	subscription->arg = arg;
	pthread_mutex_lock(&engine->lock);
	pthread_mutex_lock(&sandbox->state);
	subscription->owner = sandbox->record.owner;
	pthread_mutex_unlock(&sandbox->state);
	subscription->next = engine->subscriptions;
	engine->subscriptions = subscription;
	/* The id of one that was deleted just now may be somebody else's already. */
	if (sandbox->gone)
		end_subscription(subscription);
	else
		subscription->ports = port_watch_join(engine, sandbox->id, event, arg);
	pthread_mutex_unlock(&engine->lock);
	return subscription;
}

void engine_dismiss_strangers(struct engine *engine, const struct sandbox_record *record)
{
	for (struct subscription *s = engine->subscriptions; s; s = s->next) {
		if (strcmp(s->sandbox_id, record->id) == 0 &&
			!sandbox_record_is_of(record, &s->owner))
			end_subscription(s);
	}
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
	port_watch_leave(subscription->ports);
	pthread_mutex_unlock(&engine->lock);
	free(subscription);
}

void engine_tell(struct engine *engine, const char *sandbox_id, const char *type, const char *json)
{
	engine->event_sequence++;
	for (struct subscription *s = engine->subscriptions; s; s = s->next) {
		if (strcmp(s->sandbox_id, sandbox_id) == 0)
			s->event(s->arg, engine->event_sequence, type, json);
	}
}

void engine_publish(
	struct engine *engine, const char *sandbox_id, const char *type, const char *json)
{
	pthread_mutex_lock(&engine->lock);
	engine_tell(engine, sandbox_id, type, json);
	pthread_mutex_unlock(&engine->lock);
}

void sandbox_announce(struct sandbox *sandbox)
{
	char type[32], json[256], now[CLOCK_TEXT_LEN];
	const char *status;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->gone ? "deleted" : sandbox_status_name(sandbox->record.status);
	pthread_mutex_unlock(&sandbox->state);
	clock_format(clock_wall_ms(), now);
	snprintf(type, sizeof(type), "sandbox.%s", status);
	snprintf(json, sizeof(json), "{\"sandbox\":\"%s\",\"status\":\"%s\",\"at\":\"%s\"}",
		sandbox->id, status, now);
	engine_publish(sandbox->engine, sandbox->id, type, json);
}
