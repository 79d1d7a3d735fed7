/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/event_bus.h"

#include "base/format.h"
#include "model/access/owner.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define KEPT_EVENTS 4096
#define KEPT_BYTES  (1u << 20) /* of their JSON */
#define TYPE_MAX    40

static const struct {
	const char *name;
	bool must_be_named; /* there are many of them */
	bool is_fleeting;   /* the next one says the same better: not kept */
} topics[] = {{"sandbox"}, {"start"}, {"port"}, {"network"}, {"job"}, {"execution"}, {"project"},
	{"member"}, {"pool"}, {"command"}, {"process", .must_be_named = true},
	{"stats", .must_be_named = true, .is_fleeting = true}};

/* An event as it was told. */
struct kept_event {
	uint64_t sequence;
	struct owner owner;
	char subject[ID_LEN + 1], sandbox[ID_LEN + 1];
	char type[TYPE_MAX];
	char *json;
};

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
	struct kept_event *kept; /* a ring of KEPT_EVENTS */
	size_t first, count, bytes;
	uint64_t gone; /* all up to this one are not kept any more, or never were */
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

/* The row of a topic; NULL if there is none. */
static const typeof(topics[0]) *find_topic(const char *word, size_t len)
{
	for (size_t i = 0; i < array_len(topics); i++) {
		if (strlen(topics[i].name) == len && strncmp(topics[i].name, word, len) == 0)
			return &topics[i];
	}
	return NULL;
}

int event_bus_check_topics(const char *list, struct err *err)
{
	bool is_right = strlen(list) < EVENT_TOPICS_MAX;
	const char *word = list;
	char names[EVENT_TOPICS_MAX];
	size_t used = 0;

	while (is_right) {
		size_t len = strcspn(word, ",");

		is_right = find_topic(word, len);
		if (!word[len])
			break;
		word += len + 1;
	}
	if (is_right)
		return 0;
	for (size_t i = 0; i < array_len(topics); i++)
		used = format_append(
			names, sizeof(names), used, "%s%s", i ? ", " : "", topics[i].name);
	return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
		"parameter topics must be some of %s, with commas between", names);
}

struct event_bus *event_bus_new(uint64_t sequence)
{
	struct event_bus *bus = mem_new(sizeof(*bus));

	pthread_mutex_init(&bus->lock, NULL);
	bus->sequence = bus->gone = sequence;
	bus->kept = mem_new(KEPT_EVENTS * sizeof(*bus->kept));
	return bus;
}

/* --- what is kept; the lock is held --- */

static void forget_oldest(struct event_bus *bus)
{
	struct kept_event *oldest = &bus->kept[bus->first];

	bus->gone = oldest->sequence;
	bus->bytes -= strlen(oldest->json);
	free(take_ptr(&oldest->json));
	bus->first = (bus->first + 1) % KEPT_EVENTS;
	bus->count--;
}

static void keep(struct event_bus *bus, const struct owner *owner, const struct event *event)
{
	size_t len = strlen(event->json);
	struct kept_event *place;

	while (bus->count > 0 && (bus->count == KEPT_EVENTS || bus->bytes + len > KEPT_BYTES))
		forget_oldest(bus);
	if (len > KEPT_BYTES) {
		bus->gone = event->sequence;
		return;
	}
	place = &bus->kept[(bus->first + bus->count++) % KEPT_EVENTS];
	*place = (struct kept_event){
		.sequence = event->sequence, .owner = *owner, .json = mem_strdup(event->json)};
	snprintf(place->subject, sizeof(place->subject), "%s", event->subject);
	snprintf(
		place->sandbox, sizeof(place->sandbox), "%s", event->sandbox ? event->sandbox : "");
	snprintf(place->type, sizeof(place->type), "%s", event->type);
	bus->bytes += len;
}

void event_bus_free(struct event_bus *bus)
{
	if (!bus)
		return;
	while (bus->count > 0)
		forget_oldest(bus);
	free(bus->kept);
	pthread_mutex_destroy(&bus->lock);
	free(bus);
}

/* --- telling --- */

static bool is_about(const struct event *event, const char *id)
{
	return strcmp(id, event->subject) == 0 ||
	       (event->sandbox && strcmp(id, event->sandbox) == 0);
}

static bool wants(
	const struct event_follower *follower, const struct owner *owner, const struct event *event)
{
	size_t len = strcspn(event->type, ".");
	const typeof(topics[0]) *topic;

	if (!owner_equals(&follower->owner, owner) ||
		(follower->subject[0] && !is_about(event, follower->subject)))
		return false;
	if (follower->topics[0])
		return has_word(follower->topics, event->type, len);
	topic = find_topic(event->type, len);
	return !topic || !topic->must_be_named;
}

void event_bus_publish_in(struct event_bus *bus, const struct owner *owner, const char *sandbox,
	const char *subject, const char *type, const char *json)
{
	const typeof(topics[0]) *topic = find_topic(type, strcspn(type, "."));
	struct event event = {.type = type, .subject = subject, .sandbox = sandbox, .json = json};

	pthread_mutex_lock(&bus->lock);
	event.sequence = ++bus->sequence;
	if (!topic || !topic->is_fleeting)
		keep(bus, owner, &event);
	for (struct event_follower *f = bus->followers; f; f = f->next) {
		if (wants(f, owner, &event))
			f->event(f->arg, &event);
	}
	pthread_mutex_unlock(&bus->lock);
}

void event_bus_publish(struct event_bus *bus, const struct owner *owner, const char *subject,
	const char *type, const char *json)
{
	event_bus_publish_in(bus, owner, NULL, subject, type, json);
}

bool event_bus_is_followed(struct event_bus *bus, const struct owner *owner, const char *topic)
{
	bool is_followed = false;

	pthread_mutex_lock(&bus->lock);
	for (struct event_follower *f = bus->followers; f && !is_followed; f = f->next)
		is_followed = (!owner || owner_equals(&f->owner, owner)) &&
			      has_word(f->topics, topic, strlen(topic));
	pthread_mutex_unlock(&bus->lock);
	return is_followed;
}

uint64_t event_bus_next(struct event_bus *bus)
{
	uint64_t sequence;

	pthread_mutex_lock(&bus->lock);
	sequence = ++bus->sequence;
	pthread_mutex_unlock(&bus->lock);
	return sequence;
}

/* What was told since a number, as far as it is kept; and first, whether that is not all. */
static void tell_kept(struct event_bus *bus, const struct event_follower *follower, uint64_t after)
{
	char json[64];

	if (after < bus->gone || after > bus->sequence) {
		snprintf(json, sizeof(json), "{\"count\":null,\"since\":%llu}",
			(unsigned long long)after);
		follower->event(follower->arg,
			&(struct event){.type = "missed", .subject = "", .json = json});
	}
	for (size_t i = 0; i < bus->count; i++) {
		const struct kept_event *kept = &bus->kept[(bus->first + i) % KEPT_EVENTS];
		const struct event event = {.sequence = kept->sequence,
			.type = kept->type,
			.subject = kept->subject,
			.sandbox = kept->sandbox[0] ? kept->sandbox : NULL,
			.json = kept->json};

		if (kept->sequence > after && wants(follower, &kept->owner, &event))
			follower->event(follower->arg, &event);
	}
}

static void greet(struct event_bus *bus, const struct event_follower *follower,
	const struct event_filter *filter)
{
	const struct event greeting = {.sequence = filter->resumes ? filter->after : bus->sequence,
		.type = "following",
		.subject = "",
		.json = filter->greeting};

	follower->event(follower->arg, &greeting);
	if (filter->resumes)
		tell_kept(bus, follower, filter->after);
	follower->event(follower->arg, NULL);
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
	if (filter->greeting)
		greet(bus, follower, filter);
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
