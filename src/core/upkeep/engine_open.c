/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/engine_open.h"

#include "base/share_pool.h"
#include "core/engine/db_writer.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/member/member_watch.h"
#include "core/output/output_rate.h"
#include "core/pool/pool_claim.h"
#include "core/preview/subscription.h"
#include "core/process/process_table.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/sandbox/late_create.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_request.h"
#include "core/sandbox/sandbox_run.h"
#include "core/upkeep/host_watch.h"
#include "core/upkeep/reaper.h"
#include "core/upkeep/reconcile.h"
#include "core/upkeep/stats_sampler.h"

#include <limits.h>
#include <sys/random.h>

/* What the directories below ask of those above them. */
static const struct engine_verbs verbs = {
	.use = sandbox_wake_and_use,
	.settle = sandbox_run_settle,
	.change = sandbox_change,
	.stop = sandbox_stop,
	.needs_row = start_command_needs_row,
	.claim = pool_claim,
	.create_builder = sandbox_request_create_builder,
	.purge_builder = sandbox_request_purge_builder,
	.check_template = sandbox_request_check_template,
	.template_ended = late_create_settle_job,
	.id_taken = engine_end_foreign_subscriptions,
};

static struct share_pool *open_pool(unsigned max, bool spares_operator)
{
	struct share_limits limits = share_limits_of(max ? max : UINT_MAX);

	limits.spares_operator = spares_operator;
	return share_pool_new(&limits);
}

static int start_threads(struct engine *engine, struct err *err)
{
	typedef void *(*thread_fn)(void *engine);
	static const thread_fn threads[ENGINE_THREADS] = {reaper_run, host_watch_memory,
		host_watch_disk, stats_sampler_run, ready_check_run, pools_run, member_watch_run};

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
	engine->verbs = &verbs;
	if (getrandom(engine->confirm_key, sizeof(engine->confirm_key), 0) !=
		(ssize_t)sizeof(engine->confirm_key))
		abort();
	engine->has_held = true; /* those that a daemon before us held, if there are any */
	pthread_mutex_init(&engine->prepared_lock, NULL);
	engine->prepared = json_object();
	engine->ready_checks = ready_checks_new();
	engine->pools = pools_new();
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

/* Cuts every link without ending what is behind it: the keeper holds on to the agents. */
static void let_go(struct engine *engine)
{
	size_t count;
	struct sandbox **sandboxes = engine_list(engine, &count);

	for (size_t i = 0; i < count; i++) {
		struct sandbox *sandbox = sandboxes[i];
		struct agent_link *link;

		pthread_mutex_lock(&sandbox->state);
		sandbox->ending = true;
		link = sandbox->link ? agent_link_ref(sandbox->link) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		if (link)
			agent_link_close(link);
		agent_link_unref(link);
	}
	for (size_t i = 0; i < count; i++) {
		struct sandbox *sandbox = sandboxes[i];

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
		start_command_leave(sandbox);
		ready_check_end(sandbox);
		sandbox_network_close(sandbox);
		process_table_let_go(sandbox);
		run_place_give_back(sandbox);
		sandbox_cancel_undo(sandbox);
		sandbox_unref(sandbox);
	}
	free(sandboxes);
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->closing = true;
	pthread_cond_broadcast(&engine->work);
	pthread_mutex_unlock(&engine->lock);
	ready_checks_stop(engine->ready_checks);
	pools_stop(engine->pools);
	while (engine->thread_count > 0)
		pthread_join(engine->threads[--engine->thread_count], NULL);
	if (engine->loop) {
		pools_let_go(engine->pools);
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
	ready_checks_free(engine->ready_checks);
	pools_free(engine->pools);
	share_pool_free(engine->processes);
	share_pool_free(engine->running);
	pthread_mutex_destroy(&engine->prepared_lock);
	json_decref(engine->prepared);
	pthread_mutex_destroy(&engine->rows_lock);
	pthread_mutex_destroy(&engine->lock);
	pthread_cond_destroy(&engine->work);
	free(engine);
}
