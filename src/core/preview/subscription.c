/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/subscription.h"

#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"
#include "core/preview/port_watch.h"

#include <string.h>

struct subscription {
	struct subscription *next;
	char sandbox_id[ID_LEN + 1]; /* empty: it is over */
	struct owner owner;
	struct event_follower *follower;
	void (*over)(void *arg);
	void *arg;
	struct port_watch *ports;
};

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
