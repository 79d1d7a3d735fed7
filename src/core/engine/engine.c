/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/engine.h"

#include "base/clock.h"
#include "base/share_pool.h"
#include "core/engine/member_state.h"
#include "core/engine/sandbox_state.h"

#include <stdio.h>

struct store *engine_store(struct engine *engine)
{
	return engine->config.store;
}

void engine_measure(struct engine *engine, struct engine_stats *ret_stats)
{
	*ret_stats = (struct engine_stats){.running = share_pool_used(engine->running),
		.processes = share_pool_used(engine->processes),
		.denials = atomic_load(&engine->denials)};
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

void engine_note_unshared(struct engine *engine)
{
	if (engine->config.preview_generation)
		atomic_fetch_add(engine->config.preview_generation, 1);
}

/* What happens to a member is told to those who follow its sandbox. */
void sandbox_tell(struct sandbox *sandbox, const char *type, const char *json)
{
	char subject[ID_LEN + 1];
	struct owner owner;

	pthread_mutex_lock(&sandbox->state);
	owner = sandbox->record.owner;
	snprintf(subject, sizeof(subject), "%s",
		sandbox->record.parent[0] ? sandbox->record.parent : sandbox->id);
	pthread_mutex_unlock(&sandbox->state);
	event_bus_publish(sandbox->engine->config.bus, &owner, subject, type, json);
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

	snprintf(type, sizeof(type), "%s.%s", member_state_is_one(sandbox) ? "member" : "sandbox",
		status_of(sandbox, &end));
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
	event = json_pack("{s:s, s:s, s:s}", "sandbox",
		member_state_is_one(sandbox) ? sandbox->record.parent : sandbox->id, "status",
		status, "at", now);
	if (member_state_is_one(sandbox))
		json_object_update_new(event,
			json_pack("{s:s, s:s}", "member", sandbox->record.role, "id", sandbox->id));
	if (end.reason != END_NONE)
		json_object_update_new(
			event, json_pack("{s:s, s:s}", "reason", end_reason_name(end.reason),
				       "detail", end.detail));
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	if (text)
		sandbox_tell(sandbox, type, text);
}
