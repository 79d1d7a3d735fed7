/* SPDX-License-Identifier: Apache-2.0 */
/* Events of inotify as they come, with the two halves of a rename brought together. */
#pragma once

#include "base/mem.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#define INOTIFY_QUEUE_LEN (64u * 1024)

struct inotify_queue {
	int inotify;	/* nonblocking */
	size_t at, len; /* of events */
	_Alignas(struct inotify_event) char events[INOTIFY_QUEUE_LEN];
};

/* The descriptor is -errno if it cannot be had. */
void inotify_queue_open(struct inotify_queue *queue);
void inotify_queue_close(struct inotify_queue *queue);

/* Reads more events behind those that are there, waiting so long for the first. */
void inotify_queue_read(struct inotify_queue *queue, int timeout_ms);

/*
 * Returns the next event and moves past it; NULL if there is none. Its memory moves when more are
 * read.
 */
struct inotify_event *inotify_queue_next(struct inotify_queue *queue);

/*
 * Finds the other half of a rename, NULL if it does not come. It stays in the queue. The kernel
 * queues it right behind the first, but for events that happen at the same moment; so the function
 * waits only if nothing has come behind the first.
 */
struct inotify_event *inotify_queue_await_pair(struct inotify_queue *queue, uint32_t cookie);

/* The name in an event: "" if it is about the directory itself. */
const char *inotify_queue_name(const struct inotify_event *event);
