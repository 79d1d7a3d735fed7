/* SPDX-License-Identifier: Apache-2.0 */
#include "http/fair_queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#define BUCKETS 1024

struct fair_queue_class {
	struct fair_queue_class *next; /* in its bucket */
	uint64_t key;
	unsigned inside, waiting;
	struct fair_queue_entry *first, **last; /* entries that wait */
};

struct fair_queue {
	struct workers *workers;
	unsigned max_waiting;
	pthread_mutex_t lock;
	struct fair_queue_class *buckets[BUCKETS];
};

struct fair_queue *fair_queue_new(struct workers *workers, unsigned max_waiting)
{
	struct fair_queue *queue = mem_new(sizeof(*queue));

	queue->workers = workers;
	queue->max_waiting = max_waiting;
	pthread_mutex_init(&queue->lock, NULL);
	return queue;
}

void fair_queue_free(struct fair_queue *queue)
{
	if (!queue)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		assert(!queue->buckets[i]);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

/* Where the class is linked, or would be. The lock is held, here and below. */
static struct fair_queue_class **find(struct fair_queue *queue, uint64_t key)
{
	struct fair_queue_class **at = &queue->buckets[key % BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static struct fair_queue_class *open_class(struct fair_queue *queue, uint64_t key)
{
	struct fair_queue_class **at = find(queue, key);

	if (!*at) {
		*at = mem_new(sizeof(**at));
		(*at)->key = key;
		(*at)->last = &(*at)->first;
	}
	return *at;
}

static void append(struct fair_queue_class *class, struct fair_queue_entry *entry)
{
	entry->next = NULL;
	*class->last = entry;
	class->last = &entry->next;
	class->waiting++;
}

/* Takes the remaining places; as fair_queue_enter(). */
static int advance(struct fair_queue *queue, struct fair_queue_entry *entry)
{
	while (entry->held < entry->count) {
		const struct fair_queue_claim *claim = &entry->claims[entry->held];
		struct fair_queue_class *class = open_class(queue, claim->key);

		entry->classes[entry->held] = class;
		if (class->inside < claim->max) {
			class->inside++;
			entry->held++;
		} else if (class->waiting < queue->max_waiting || entry->must_run) {
			append(class, entry);
			return 0;
		} else {
			return -EAGAIN;
		}
	}
	return 1;
}

/* Gives the place of an entry that left to the first that waits. */
static void let_in(struct fair_queue *queue, struct fair_queue_class *class)
{
	struct fair_queue_entry *entry = class->first;
	int r;

	class->first = entry->next;
	if (!class->first)
		class->last = &class->first;
	class->waiting--;
	entry->held++;
	/* After a wait it is not refused by the next class. */
	entry->must_run = true;
	r = advance(queue, entry);
	assert(r >= 0);
	if (r == 1)
		workers_submit_always(queue->workers, entry->item);
}

static void leave(struct fair_queue *queue, struct fair_queue_entry *entry)
{
	while (entry->held > 0) {
		struct fair_queue_class *class = entry->classes[--entry->held];

		if (class->first) {
			let_in(queue, class);
		} else if (--class->inside == 0) {
			*find(queue, class->key) = class->next;
			free(class);
		}
	}
}

int fair_queue_enter(struct fair_queue *queue, struct fair_queue_entry *entry)
{
	int r;

	entry->held = 0;
	pthread_mutex_lock(&queue->lock);
	r = advance(queue, entry);
	if (r < 0)
		leave(queue, entry);
	pthread_mutex_unlock(&queue->lock);
	return r;
}

void fair_queue_leave(struct fair_queue *queue, struct fair_queue_entry *entry)
{
	pthread_mutex_lock(&queue->lock);
	leave(queue, entry);
	pthread_mutex_unlock(&queue->lock);
}
