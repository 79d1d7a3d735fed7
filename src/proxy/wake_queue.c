/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/wake_queue.h"

#include "http/fair_queue.h"
#include "proxy/connection/proxy_conn_answer.h"
#include "proxy/message/refusal.h"
#include "proxy/proxy_loop.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CLASS_OF_ALL UINT64_C(0)

struct wake {
	struct wake *next;
	struct wake_queue *queue;
	char key[64];
	struct proxy_conn *conns;
	struct work_item item;
	struct fair_queue_entry entry;
};

struct wake_queue {
	const struct proxy_config *config;
	struct workers *workers;
	struct fair_queue *fair_queue;
	atomic_bool stopping;

	pthread_mutex_t lock;
	struct wake *first;
};

struct wake_queue *wake_queue_new(const struct proxy_config *config, struct workers *workers)
{
	struct wake_queue *queue = mem_new(sizeof(*queue));

	queue->config = config;
	queue->workers = workers;
	/* Any number may wait: all of them must run. */
	queue->fair_queue = fair_queue_new(workers, 0);
	pthread_mutex_init(&queue->lock, NULL);
	return queue;
}

void wake_queue_free(struct wake_queue *queue)
{
	if (!queue)
		return;
	fair_queue_free(queue->fair_queue);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

void wake_queue_stop(struct wake_queue *queue)
{
	atomic_store(&queue->stopping, true);
}

/* Takes those off a wake who have waited for too long, and puts them in front of a list. */
static void take_expired(struct wake *wake, uint64_t now_ms, struct proxy_conn **list)
{
	uint64_t most_ms = wake->queue->config->wake_ms;
	struct proxy_conn **at = &wake->conns;

	while (*at) {
		struct proxy_conn *conn = *at;

		if (now_ms < conn->asked_ms + most_ms) {
			at = &conn->next_waiting;
			continue;
		}
		*at = conn->next_waiting;
		conn->next_waiting = *list;
		*list = conn;
	}
}

void wake_queue_expire(struct wake_queue *wake_queue, uint64_t now_ms)
{
	struct proxy_conn *expired = NULL;

	pthread_mutex_lock(&wake_queue->lock);
	for (struct wake *wake = wake_queue->first; wake; wake = wake->next)
		take_expired(wake, now_ms, &expired);
	pthread_mutex_unlock(&wake_queue->lock);
	while (expired) {
		struct proxy_conn *conn = expired;

		expired = conn->next_waiting;
		proxy_conn_answer_prepare(conn, &refusal_wake_timeout);
		proxy_loop_found(conn->loop, conn);
	}
}

/* Takes the wake off the list, so that no connection joins it; returns those that wait for it. */
static struct proxy_conn *finish_wake(struct wake *wake)
{
	struct wake_queue *queue = wake->queue;
	struct wake **at = &queue->first;

	pthread_mutex_lock(&queue->lock);
	while (*at != wake)
		at = &(*at)->next;
	*at = wake->next;
	pthread_mutex_unlock(&queue->lock);
	return wake->conns;
}

/* Wakes the target, then submits the items of all connections that waited. */
static void run(struct work_item *item)
{
	struct wake *wake = (struct wake *)((char *)item - offsetof(struct wake, item));
	struct wake_queue *queue = wake->queue;
	const struct proxy_config *config = queue->config;
	struct proxy_conn *conn;

	if (!atomic_load(&queue->stopping))
		config->wake(config->context, wake->key);
	fair_queue_leave(queue->fair_queue, &wake->entry);
	conn = finish_wake(wake);
	free(wake);
	while (conn && !atomic_load(&queue->stopping)) {
		struct proxy_conn *next = conn->next_waiting;

		workers_submit_always(queue->workers, &conn->item);
		conn = next;
	}
}

static struct wake *add_wake(struct wake_queue *queue, const struct proxy_way *way)
{
	struct wake *wake = mem_new(sizeof(*wake));
	unsigned workers = queue->config->max_workers;

	wake->queue = queue;
	memcpy(wake->key, way->key, sizeof(wake->key));
	wake->item.run = run;
	wake->entry = (struct fair_queue_entry){.item = &wake->item,
		.claims = {{way->wake_class, (workers + 7) / 8}, {CLASS_OF_ALL, (workers + 1) / 2}},
		.count = 2,
		.must_run = true};
	wake->next = queue->first;
	queue->first = wake;
	return wake;
}

void wake_queue_join(struct wake_queue *queue, const struct proxy_way *way, struct proxy_conn *conn)
{
	struct wake *wake;
	bool is_first;

	pthread_mutex_lock(&queue->lock);
	for (wake = queue->first; wake && strcmp(wake->key, way->key) != 0;)
		wake = wake->next;
	is_first = !wake;
	if (is_first)
		wake = add_wake(queue, way);
	if (conn) {
		conn->next_waiting = wake->conns;
		wake->conns = conn;
	}
	pthread_mutex_unlock(&queue->lock);
	if (is_first && fair_queue_enter(queue->fair_queue, &wake->entry) == 1)
		workers_submit_always(queue->workers, &wake->item);
}
