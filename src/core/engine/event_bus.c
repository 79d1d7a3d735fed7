/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/event_bus.h"

#include "model/owner.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const topics[] = {"sandbox", "start", "port", "network", "job", "execution"};

struct event_follower {
	struct event_follower *next;
	struct owner owner;
	char subject[ID_LEN + 1];      /* empty: all */
	char topics[EVENT_TOPICS_MAX]; /* empty: all */
	event_fn event;
	void *arg;
};

struct event_bus {
	pthread_mutex_t lock; /* what follows */
	uint64_t sequence;
	struct event_follower *followers;
};

/* Whether a list with commas has a word of that length. */
static bool has_word(const char *list, const char *word, size_t len)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		if (strcspn(list, ",") == len && strncmp(list, word, len) == 0)
			return true;
	}
	return false;
}

static bool is_topic(const char *word, size_t len)
{
	for (size_t i = 0; i < array_len(topics); i++) {
		if (strlen(topics[i]) == len && strncmp(topics[i], word, len) == 0)
			return true;
	}
	return false;
}

int event_bus_check_topics(const char *list, struct err *err)
{
	bool is_right = strlen(list) < EVENT_TOPICS_MAX;
	const char *word = list;

	while (is_right) {
		size_t len = strcspn(word, ",");

		is_right = is_topic(word, len);
		if (!word[len])
			break;
		word += len + 1;
	}
	if (is_right)
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
		"parameter topics must be some of sandbox, start, port, network and job, with "
		"commas between");
}

struct event_bus *event_bus_new(uint64_t sequence)
{
	struct event_bus *bus = mem_new(sizeof(*bus));

	pthread_mutex_init(&bus->lock, NULL);
	bus->sequence = sequence;
	return bus;
}

void event_bus_free(struct event_bus *bus)
{
	if (!bus)
		return;
	pthread_mutex_destroy(&bus->lock);
	free(bus);
}

static bool wants(
	const struct event_follower *follower, const struct owner *owner, const struct event *event)
{
	return owner_equals(&follower->owner, owner) &&
	       (!follower->subject[0] || strcmp(follower->subject, event->subject) == 0) &&
	       (!follower->topics[0] ||
		       has_word(follower->topics, event->type, strcspn(event->type, ".")));
}

void event_bus_publish(struct event_bus *bus, const struct owner *owner, const char *subject,
	const char *type, const char *json)
{
	struct event event = {.type = type, .subject = subject, .json = json};

	pthread_mutex_lock(&bus->lock);
	event.sequence = ++bus->sequence;
	for (struct event_follower *f = bus->followers; f; f = f->next) {
		if (wants(f, owner, &event))
			f->event(f->arg, &event);
	}
	pthread_mutex_unlock(&bus->lock);
}

uint64_t event_bus_next(struct event_bus *bus)
{
	uint64_t sequence;

	pthread_mutex_lock(&bus->lock);
	sequence = ++bus->sequence;
	pthread_mutex_unlock(&bus->lock);
	return sequence;
}

struct event_follower *event_bus_follow(
	struct event_bus *bus, const struct event_filter *filter, event_fn event, void *arg)
{
	struct event_follower *follower = mem_new(sizeof(*follower));

	follower->owner = *filter->owner;
	snprintf(follower->subject, sizeof(follower->subject), "%s",
		filter->subject ? filter->subject : "");
	snprintf(follower->topics, sizeof(follower->topics), "%s",
		filter->topics ? filter->topics : "");
	follower->event = event;
	follower->arg = arg;
	pthread_mutex_lock(&bus->lock);
	follower->next = bus->followers;
	bus->followers = follower;
	pthread_mutex_unlock(&bus->lock);
	return follower;
}

void event_bus_leave(struct event_bus *bus, struct event_follower *follower)
{
	struct event_follower **at;

	if (!follower)
		return;
	pthread_mutex_lock(&bus->lock);
	for (at = &bus->followers; *at != follower; at = &(*at)->next)
		;
	*at = follower->next;
	pthread_mutex_unlock(&bus->lock);
	free(follower);
}
