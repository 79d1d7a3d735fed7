/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wakes under way, and the connections that wait for them: each key is woken once, however many
 * want it.
 *
 * A wake may take long and holds a worker meanwhile. So each wake is a work item of two classes
 * (http/fair_queue.h): of one wake_class only a few run at a time, and all wakes together leave
 * half of the workers to look-ups. A connection that waits holds no thread. Any thread.
 */
#pragma once

#include "http/workers.h"
#include "proxy/connection/proxy_conn_state.h"

struct wake_queue;

/* Both arguments are borrowed. */
struct wake_queue *wake_queue_new(const struct proxy_config *config, struct workers *workers);
void wake_queue_free(struct wake_queue *queue);

/*
 * Has what a way leads to woken, unless that is under way; blocks nobody. The proxy connection waits, and must not be touched
 * any more: its item runs when it is awake, or cannot be woken, or its loop gets it back with a refusal when it has
 * waited for too long. NULL: nobody waits.
 */
void wake_queue_join(
	struct wake_queue *queue, const struct proxy_way *way, struct proxy_conn *conn);

/* Answers those who have waited for longer than they may. What they waited for is woken all the same. */
void wake_queue_expire(struct wake_queue *wake_queue, uint64_t now_ms);

/* From now on nothing more is woken, and who waits is left to its loop. */
void wake_queue_stop(struct wake_queue *wake_queue);
