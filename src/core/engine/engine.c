/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/engine.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/engine/db_writer.h"
#include "core/engine/host_watch.h"
#include "core/output/output_rate.h"
#include "core/output/sandbox_output.h"
#include "core/preview/port_watch.h"
#include "core/process/process_table.h"
#include "core/process/start_command.h"
#include "core/sandbox/run_place.h"
#include "core/sandbox/sandbox_network.h"
#include "core/sandbox/sandbox_state.h"
#include "event/timer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct subscription {
	struct subscription *next;
	char sandbox_id[ID_LEN + 1]; /* empty: it is over */
	struct owner owner;
	struct event_follower *follower;
	void (*over)(void *arg);
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

struct timer *engine_open_timer(
	struct engine *engine, void (*expired)(void *arg), void (*release)(void *arg), void *arg)
{
	return timer_open(engine->loop, expired, release, arg);
}

static struct share_pool *open_pool(unsigned max, bool spares_operator)
{
	struct share_limits limits = share_limits_of(max ? max : UINT_MAX);

	limits.spares_operator = spares_operator;
	return share_pool_new(&limits);
}

static int start_threads(struct engine *engine, struct err *err)
{
	typedef void *(*thread_fn)(void *engine);
	static const thread_fn threads[ENGINE_THREADS] = {
		reaper_run, host_watch_memory, host_watch_disk};

	while (engine->thread_count < ENGINE_THREADS) {
		unsigned i = engine->thread_count;
		int r = -pthread_create(&engine->threads[i], NULL, threads[i], engine);

		if (r < 0)
			return err_from(err, r, "start the reaper and the watches of the host");
		engine->thread_count++;
	}
	return 0;
}

int engine_open(const struct engine_config *config, struct engine **ret_engine, struct err *err)
{
	struct engine *engine = mem_new(sizeof(*engine));
	pthread_condattr_t attr;
	int r;

	engine->config = *config;
	engine->has_held = true; /* those that a daemon before us held, if there are any */
	pthread_mutex_init(&engine->prepared_lock, NULL);
	engine->prepared = json_object();
	pthread_mutex_init(&engine->rows_lock, NULL);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->work, &attr);
	pthread_condattr_destroy(&attr);
	engine->processes = open_pool(config->max_processes, false);
	/* On most machines the operator is alone. */
	engine->running = open_pool(config->max_running, true);
	r = event_loop_open("event-loop", NULL, &engine->loop, err);
	if (r == 0)
		r = db_writer_open(&engine->db_writer, err);
	if (r == 0) {
		engine->output_rate = output_rate_open(engine->loop);
		r = egress_open(&(struct egress_config){.resolver = config->resolver,
					.secret_cache = config->secret_cache,
					.max_connections = config->egress_connections,
					.max_pipes = config->egress_pipes,
					.max_lookups = config->egress_lookups,
					.denied = sandbox_network_announce_denial,
					.arg = engine},
			&engine->egress, err);
	}
	if (r == 0)
		r = reconcile(engine, err);
	if (r == 0)
		r = start_threads(engine, err);
	if (r < 0) {
		engine_close(engine);
		return r;
	}
	*ret_engine = engine;
	return 0;
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

/* Cuts every link without ending what is behind it: the keeper holds on to the agents. */
static void let_go(struct engine *engine)
{
	struct sandbox_list sandbox_list = list_sandboxes(engine);

	for (size_t i = 0; i < sandbox_list.count; i++) {
		struct sandbox *sandbox = sandbox_list.sandboxes[i];
		struct agent_link *link;

		pthread_mutex_lock(&sandbox->state);
		sandbox->ending = true;
		link = sandbox->link ? agent_link_ref(sandbox->link) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		if (link)
			agent_link_close(link);
		agent_link_unref(link);
	}
	for (size_t i = 0; i < sandbox_list.count; i++) {
		struct sandbox *sandbox = sandbox_list.sandboxes[i];

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
		start_command_leave(sandbox);
		sandbox_network_close(sandbox);
		process_table_let_go(sandbox);
		run_place_give_back(sandbox);
		sandbox_cancel_undo(sandbox);
		sandbox_unref(sandbox);
	}
	free(sandbox_list.sandboxes);
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->closing = true;
	pthread_cond_broadcast(&engine->work);
	pthread_mutex_unlock(&engine->lock);
	while (engine->thread_count > 0)
		pthread_join(engine->threads[--engine->thread_count], NULL);
	if (engine->loop) {
		let_go(engine);
		/* A timer that is due just now still gives work to the database writer. */
		event_loop_stop(engine->loop);
		event_loop_join(engine->loop);
	}
	egress_close(engine->egress);
	db_writer_close(engine->db_writer);
	output_rate_close(engine->output_rate);
	event_loop_close(engine->loop);
	for (size_t i = 0; i < engine->lost_count; i++)
		sandbox_unref(engine->lost[i]);
	free(engine->lost);
	free(engine->orphans);
	share_pool_free(engine->processes);
	share_pool_free(engine->running);
	pthread_mutex_destroy(&engine->prepared_lock);
	json_decref(engine->prepared);
	pthread_mutex_destroy(&engine->rows_lock);
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
static void end_subscription(struct engine *engine, struct subscription *subscription)
{
	subscription->sandbox_id[0] = '\0';
	port_watch_leave(take_ptr(&subscription->ports));
	event_bus_leave(engine->config.bus, take_ptr(&subscription->follower));
	subscription->over(subscription->arg);
}

struct subscription *engine_subscribe(
	struct sandbox *sandbox, event_fn event, void (*over)(void *arg), void *arg)
{
	struct subscription *subscription = mem_new(sizeof(*subscription));
	struct event_filter filter = {.owner = &subscription->owner, .subject = sandbox->id};
	struct engine *engine = sandbox->engine;

	memcpy(subscription->sandbox_id, sandbox->id, sizeof(subscription->sandbox_id));
	subscription->over = over;
	subscription->arg = arg;
	pthread_mutex_lock(&engine->lock);
	pthread_mutex_lock(&sandbox->state);
	subscription->owner = sandbox->record.owner;
	pthread_mutex_unlock(&sandbox->state);
	subscription->next = engine->subscriptions;
	engine->subscriptions = subscription;
	/* The id of one that was deleted just now may be somebody else's already. */
	if (sandbox->gone) {
		end_subscription(engine, subscription);
	} else {
		subscription->follower = event_bus_follow(engine->config.bus, &filter, event, arg);
		subscription->ports =
			port_watch_join(engine, sandbox->id, &subscription->owner, event, arg);
	}
	pthread_mutex_unlock(&engine->lock);
	return subscription;
}

void engine_end_foreign_subscriptions(struct engine *engine, const struct sandbox_record *record)
{
	for (struct subscription *s = engine->subscriptions; s; s = s->next) {
		if (strcmp(s->sandbox_id, record->id) == 0 &&
			!sandbox_record_is_of(record, &s->owner))
			end_subscription(engine, s);
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
	event_bus_leave(engine->config.bus, subscription->follower);
	pthread_mutex_unlock(&engine->lock);
	free(subscription);
}

void sandbox_tell(struct sandbox *sandbox, const char *type, const char *json)
{
	struct owner owner;

	pthread_mutex_lock(&sandbox->state);
	owner = sandbox->record.owner;
	pthread_mutex_unlock(&sandbox->state);
	event_bus_publish(sandbox->engine->config.bus, &owner, sandbox->id, type, json);
}

static const char *status_of(struct sandbox *sandbox, struct termination *ret_end)
{
	const char *status;

	pthread_mutex_lock(&sandbox->state);
	status = sandbox->gone ? "deleted" : sandbox_status_name(sandbox->record.status);
	*ret_end = sandbox->record.end;
	pthread_mutex_unlock(&sandbox->state);
	return status;
}

void sandbox_announce(struct sandbox *sandbox)
{
	struct termination end;
	char type[32];

	snprintf(type, sizeof(type), "sandbox.%s", status_of(sandbox, &end));
	sandbox_publish(sandbox, type);
}

void sandbox_publish(struct sandbox *sandbox, const char *type)
{
	struct termination end;
	const char *status = status_of(sandbox, &end);
	auto_free char *text = NULL;
	char now[CLOCK_TEXT_LEN];
	json_t *event;

	clock_format(clock_wall_ms(), now);
	event = json_pack("{s:s, s:s, s:s}", "sandbox", sandbox->id, "status", status, "at", now);
	if (end.reason != END_NONE)
		json_object_update_new(
			event, json_pack("{s:s, s:s}", "reason", end_reason_name(end.reason),
				       "detail", end.detail));
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	if (text)
		sandbox_tell(sandbox, type, text);
}
