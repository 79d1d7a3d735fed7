/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that waits for what the HTTP library does not wait for: a helper's socket that becomes
 * readable while its connection sleeps, a client that leaves while nobody reads from it, a time.
 *
 * Watches fire once and are then idle until they are armed again. A callback runs on the poller's
 * thread with no lock held, so it must be short; the owner is held (ops->hold) while it runs, so a
 * callback may overlap poller_forget() but never outlives its owner.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct poller;

struct poller_ops {
	/* Keep the owner alive, and let go of it again; both may be NULL. */
	void (*hold)(void *owner);
	void (*drop)(void *owner);
	/* `events` as epoll reports them; 0 for an alarm. */
	void (*ready)(void *owner, uint32_t events);
};

/* Embedded in its owner; all but ops and owner belong to the poller. Zeroed means not known. */
struct poller_watch {
	const struct poller_ops *ops;
	void *owner;
	int fd;
	uint32_t slot; /* index into the poller's table plus one */
};

struct poller_alarm {
	const struct poller_ops *ops;
	void *owner;
	uint64_t due_ms; /* on clock_steady_ms(); 0 while not set */
	struct poller_alarm *prev, *next;
};

int poller_open(struct poller **ret_poller, struct err *err) must_check;

/* Ends the thread. Nothing may be armed afterwards; forgetting is still allowed before it. */
void poller_close(struct poller *poller);

/* Arms a watch: EPOLLIN, EPOLLOUT or EPOLLRDHUP, once. Errors and hangups are always reported. */
int poller_arm(struct poller *poller, struct poller_watch *watch, int fd, uint32_t events)
	must_check;

/* To be called before the descriptor is closed. A callback that already runs may still be running. */
void poller_forget(struct poller *poller, struct poller_watch *watch);

/* Sets, moves or (0) cancels an alarm. */
void poller_set_alarm(struct poller *poller, struct poller_alarm *alarm, uint64_t due_ms);
