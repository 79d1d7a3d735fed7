/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair shares of the worker threads: a client with many slow requests does not keep others from being served.
 *
 * Requests that have something in common, their owner or an object of that owner, are a class; so are those of all
 * owners. A class exists while
 * it has entries. It admits as many at a time as its share of the threads; the others wait, in order of arrival. An
 * entry that waits holds no thread: its item goes to the workers when another entry leaves.
 *
 * An entry may claim a place in several classes and takes them in that order. The narrower class comes first, so that
 * entries that wait for it take no place in the wider one. Any thread.
 */
#pragma once

#include "base/mem.h"
#include "http/workers.h"

#include <stdbool.h>
#include <stdint.h>

#define FAIR_QUEUE_CLAIMS_MAX 3

struct fair_queue_class;
struct fair_queue;

/* Embedded in what a work item works on. Its owner sets item, claims, count and must_run. */
struct fair_queue_entry {
	struct work_item *item; /* runs again when the entry is admitted after a wait */
	struct fair_queue_claim {
		uint64_t key;
		unsigned max; /* entries in that class at a time; the same in all claims of a key */
	} claims[FAIR_QUEUE_CLAIMS_MAX];
	unsigned count;
	bool must_run; /* the item ends something begun, so the entry is never refused */

	struct fair_queue_class *classes[FAIR_QUEUE_CLAIMS_MAX];
	unsigned held; /* classes in which it has a place */
	struct fair_queue_entry *next;
};

/* max_waiting: for each class. The workers must outlive all entries. */
struct fair_queue *fair_queue_new(struct workers *workers, unsigned max_waiting);
void fair_queue_free(struct fair_queue *queue);

/*
 * 1: the entry is admitted, and must leave. 0: it waits; the caller must not touch it any more, and its item runs when
 * it is admitted. -EAGAIN: too many wait; it has no place in any class.
 */
int fair_queue_enter(struct fair_queue *queue, struct fair_queue_entry *entry) must_check;
void fair_queue_leave(struct fair_queue *queue, struct fair_queue_entry *entry);
