/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that handlers run on: made on demand up to a maximum, gone after a quiet while, fed
 * from one bounded queue.
 *
 * A job is embedded in what it works on, so handing it over allocates nothing. A thread is woken
 * only when none is already on its way: whoever takes a job and leaves another one behind wakes the
 * next, so a burst of short jobs runs on few warm threads and a blocking one delays nobody.
 */
#pragma once

#include "base/err.h"

struct workers;

struct job {
	struct job *next;
	void (*run)(struct job *job);
};

int workers_open(unsigned max_threads, unsigned max_queue, struct workers **ret_workers,
	struct err *err) must_check;

/* 0, or -EAGAIN when max_queue jobs are waiting. */
int workers_submit(struct workers *workers, struct job *job) must_check;

/* For a job that must run because it ends something begun: never refused. */
void workers_submit_always(struct workers *workers, struct job *job);

/* Runs what is queued and waits until every job has returned. */
void workers_close(struct workers *workers);
