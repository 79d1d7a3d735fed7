/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event bus: every change is published once, with its type, its owner and what it is about, and
 * whoever follows is told. The event streams of the API are its readers.
 *
 * The last ones are kept in memory, but for samples of statistics, so that a follower who comes back goes on where it
 * was. Who was away for longer, or does not take them fast enough, is told so, and asks for the state.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"

struct event_bus;
struct event_follower;

/* The topic of an event is its type up to the dot. */
struct event {
	uint64_t
		sequence; /* grows, also over restarts of the daemon; 0: it is about the stream itself */
	const char *type;    /* "sandbox.running", "job.succeeded" */
	const char *subject; /* the id of the sandbox or job */
	const char
		*sandbox; /* the id of the sandbox that it belongs to; NULL: its subject, or none */
	const char *json; /* an object */
};

/* Called on any thread, perhaps on several at once, with the lock of the bus held; it must not block and not call
 * the bus. What the event points to is borrowed. */
typedef void (*event_fn)(void *arg, const struct event *event);

struct event_filter {
	const struct owner *owner; /* whose events; copied */
	const char *subject;	   /* of one object, or in one sandbox; NULL: all */
	const char *topics;	   /* "sandbox,job"; NULL: all but those that must be named */
	/* If given: an object that is the first event, `following`. After it come what was kept since `after`, if that is
	 * asked for, and then one call without an event. */
	const char *greeting;
	bool resumes;
	uint64_t after;
};

#define EVENT_TOPICS_MAX 160 /* bytes, with the NUL */

/* Sequence numbers go on after this one. */
struct event_bus *event_bus_new(uint64_t sequence);
/* All followers must have left. */
void event_bus_free(struct event_bus *bus);

void event_bus_publish(struct event_bus *bus, const struct owner *owner, const char *subject,
	const char *type, const char *json);

/* The same of an object that belongs to a sandbox. */
void event_bus_publish_in(struct event_bus *bus, const struct owner *owner, const char *sandbox,
	const char *subject, const char *type, const char *json);

/* Whether anybody follows a topic by its name: any owner's (NULL), or that owner's. */
bool event_bus_is_followed(struct event_bus *bus, const struct owner *owner, const char *topic);

/* A number for an event that one follower alone is told of. */
uint64_t event_bus_next(struct event_bus *bus);

struct event_follower *event_bus_follow(
	struct event_bus *bus, const struct event_filter *filter, event_fn event, void *arg);

/* After it returned, event is not called again. NULL is fine. */
void event_bus_leave(struct event_bus *bus, struct event_follower *follower);

/* 0, or ERR_INVALID if a list of topics has one that does not exist. */
int event_bus_check_topics(const char *topics, struct err *err) must_check;
