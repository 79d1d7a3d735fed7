/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many executions of an owner are kept, and for how long. To find those that are too many all rows of the owner are read, which took
 * three times as long as the executions themselves; so it is done when a sixteenth of what may be kept has come.
 */
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_state.h"
#include "core/execution/artifact_store.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "store/store_clock.h"
#include "store/work/store_execution.h"

#include <pthread.h>

#define BYTES_KEPT (256ull << 20) /* of requests and outcomes of an owner */
#define PART	   16
#define OLD_EVERY_MS                                                                               \
	(10 * 60 * 1000) /* what is too old is looked for, or more often if little is kept */

/* Whether so much came since the last time; the first after a start of the daemon, and whoever meets another owner in the
 * same place, looks at once. */
static bool is_due(struct executions *executions, const struct execution_record *record)
{
	uint64_t key = owner_key(&record->owner);
	struct execution_growth *growth =
		&executions->growths[key % array_len(executions->growths)];
	bool is_due;

	pthread_mutex_lock(&executions->lock);
	growth->count++;
	growth->bytes += record->outcome_bytes;
	is_due = growth->key != key || growth->count > executions->config.history / PART ||
		 growth->bytes > BYTES_KEPT / PART;
	if (is_due)
		*growth = (struct execution_growth){.key = key};
	pthread_mutex_unlock(&executions->lock);
	return is_due;
}

void execution_history_note(struct executions *executions, const struct execution_record *record)
{
	const struct executions_config *config = &executions->config;
	struct store_execution_rule rule = {.count = config->history,
		.since_ms = store_clock_ms(config->store) - config->keep_ms,
		.bytes = BYTES_KEPT};
	struct err err;
	int r = is_due(executions, record)
			? store_execution_prune(config->store, &record->owner, &rule, &err)
			: 0;

	if (r < 0)
		log_error("executions: %s", err.message);
	else if (r > 0)
		artifact_store_collect(config->artifacts);
}

/* --- what is too old --- */

static void forget_old(void *arg)
{
	struct executions *executions = arg;
	const struct executions_config *config = &executions->config;
	int64_t since_ms = store_clock_ms(config->store) - config->keep_ms;
	struct err err;
	int r = store_execution_expire(config->store, since_ms, &err);

	if (r < 0)
		log_error("executions: %s", err.message);
	else if (r > 0)
		artifact_store_collect(config->artifacts);
}

static void set_timer(struct executions *executions)
{
	int64_t ms = executions->config.keep_ms / PART;

	timer_set(executions->old_timer, ms < OLD_EVERY_MS ? (uint64_t)ms : OLD_EVERY_MS);
}

static void on_due(void *arg)
{
	struct executions *executions = arg;

	pthread_mutex_lock(&executions->lock);
	if (executions->old_timer) {
		db_writer_put(executions->engine->db_writer, forget_old, executions);
		set_timer(executions);
	}
	pthread_mutex_unlock(&executions->lock);
}

void execution_history_open(struct executions *executions, struct engine *engine)
{
	pthread_mutex_lock(&executions->lock);
	if (!executions->old_timer && !executions->is_leaving) {
		executions->engine = engine;
		executions->old_timer = engine_open_timer(engine, on_due, NULL, executions);
		db_writer_put(engine->db_writer, forget_old, executions);
		set_timer(executions);
	}
	pthread_mutex_unlock(&executions->lock);
}
