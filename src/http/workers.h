/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that handlers run on: created on demand up to a maximum, ended after a quiet while,
 * fed from one bounded queue.
 *
 * A work item is embedded in what it works on, so submitting it allocates nothing. A thread is woken only
 * if none is already on its way: a thread that takes a work item and leaves another one behind wakes the
 * next. So a burst of short items runs on few warm threads, and a blocking item delays no other.
 */
#pragma once

#include "base/err.h"

struct workers;

struct work_item {
	struct work_item *next;
	void (*run)(struct work_item *item);
};

int workers_open(unsigned max_threads, unsigned max_queue, struct workers **ret_workers,
	struct err *err) must_check;

/* 0, or -EAGAIN when max_queue items are waiting. */
int workers_submit(struct workers *workers, struct work_item *item) must_check;

/* For a work item that ends something begun: never refused. */
void workers_submit_always(struct workers *workers, struct work_item *item);

/* Runs what is queued and waits until every item has returned. */
void workers_close(struct workers *workers);
