/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event bus: every change is published once, with its type, its owner and what it is about, and
 * whoever follows is told. The event streams of the API are its readers.
 *
 * Events are not kept. Who was not there, or does not take them fast enough, asks for the state.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox_record.h"

struct event_bus;
struct event_follower;

/* The topic of an event is its type up to the dot. */
struct event {
	uint64_t sequence;   /* grows, also over restarts of the daemon */
	const char *type;    /* "sandbox.running", "job.succeeded" */
	const char *subject; /* the id of the sandbox or job */
	const char *json;    /* an object */
};

/* Called on any thread, perhaps on several at once, with the lock of the bus held; it must not block and not call
 * the bus. What the event points to is borrowed. */
typedef void (*event_fn)(void *arg, const struct event *event);

struct event_filter {
	const struct owner *owner; /* whose events; copied */
	const char *subject;	   /* NULL: all */
	const char *topics;	   /* "sandbox,job"; NULL: all */
};

#define EVENT_TOPICS_MAX 64 /* bytes, with the NUL */

/* Sequence numbers go on after this one. */
struct event_bus *event_bus_new(uint64_t sequence);
/* All followers must have left. */
void event_bus_free(struct event_bus *bus);

void event_bus_publish(struct event_bus *bus, const struct owner *owner, const char *subject,
	const char *type, const char *json);

/* A number for an event that one follower alone is told of. */
uint64_t event_bus_next(struct event_bus *bus);

struct event_follower *event_bus_follow(
	struct event_bus *bus, const struct event_filter *filter, event_fn event, void *arg);

/* After it returned, event is not called again. NULL is fine. */
void event_bus_leave(struct event_bus *bus, struct event_follower *follower);

/* 0, or ERR_INVALID if a list of topics has one that does not exist. */
int event_bus_check_topics(const char *topics, struct err *err) must_check;
