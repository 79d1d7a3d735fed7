/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event in the kernel's queue carries the number and generation of a slot, never a pointer: an
 * event that was fetched just before its watch was forgotten finds a newer generation and is dropped.
 */
#include "http/poller.h"

#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BATCH 64

struct slot {
	struct poller_watch *watch; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

struct poller {
	pthread_t thread;
	bool has_thread;
	int epoll_fd;
	int wake_fd;

	pthread_mutex_t lock;
	bool stopping;
	struct slot *slots;
	uint32_t slot_count;
	uint32_t first_free; /* index plus one */
	struct poller_alarm *alarms;
	uint64_t wait_until_ms; /* what the thread sleeps for; UINT64_MAX: no alarm */
};

static uint64_t event_key(uint32_t slot, uint32_t generation)
{
	return (uint64_t)generation << 32 | slot;
}

static void wake(struct poller *poller)
{
	uint64_t one = 1;

	/* Full (EAGAIN) means that the thread is being woken anyway. */
	if (write(poller->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void run_callback(const struct poller_ops *ops, void *owner, uint32_t events)
{
	ops->ready(owner, events);
	if (ops->drop)
		ops->drop(owner);
}

static void dispatch(struct poller *poller, const struct epoll_event *event)
{
	uint32_t index = (uint32_t)event->data.u64;
	uint32_t generation = (uint32_t)(event->data.u64 >> 32);
	const struct poller_ops *ops = NULL;
	void *owner = NULL;

	pthread_mutex_lock(&poller->lock);
	if (index < poller->slot_count && poller->slots[index].generation == generation &&
		poller->slots[index].watch) {
		ops = poller->slots[index].watch->ops;
		owner = poller->slots[index].watch->owner;
		if (ops->hold)
			ops->hold(owner);
	}
	pthread_mutex_unlock(&poller->lock);
	if (ops)
		run_callback(ops, owner, event->events);
}

static void unlink_alarm(struct poller *poller, struct poller_alarm *alarm)
{
	if (alarm->prev)
		alarm->prev->next = alarm->next;
	else
		poller->alarms = alarm->next;
	if (alarm->next)
		alarm->next->prev = alarm->prev;
	alarm->prev = alarm->next = NULL;
	alarm->due_ms = 0;
}

/* Takes one alarm that is due; false if there is none, with the time of the next in wait_until_ms. */
static bool take_due(struct poller *poller, const struct poller_ops **ret_ops, void **ret_owner)
{
	uint64_t now = clock_steady_ms();
	uint64_t next = UINT64_MAX;
	struct poller_alarm *alarm;

	for (alarm = poller->alarms; alarm; alarm = alarm->next) {
		if (alarm->due_ms <= now)
			break;
		if (alarm->due_ms < next)
			next = alarm->due_ms;
	}
	if (!alarm) {
		poller->wait_until_ms = next;
		return false;
	}
	*ret_ops = alarm->ops;
	*ret_owner = alarm->owner;
	unlink_alarm(poller, alarm);
	if ((*ret_ops)->hold)
		(*ret_ops)->hold(*ret_owner);
	return true;
}

/* Runs what is due; how long to wait for the next, in milliseconds, -1 for ever, -2 to stop. */
static int run_alarms(struct poller *poller)
{
	const struct poller_ops *ops;
	uint64_t until, now;
	void *owner;
	bool stopping;

	pthread_mutex_lock(&poller->lock);
	while (take_due(poller, &ops, &owner)) {
		pthread_mutex_unlock(&poller->lock);
		run_callback(ops, owner, 0);
		pthread_mutex_lock(&poller->lock);
	}
	until = poller->wait_until_ms;
	stopping = poller->stopping;
	pthread_mutex_unlock(&poller->lock);
	if (stopping)
		return -2;
	if (until == UINT64_MAX)
		return -1;
	now = clock_steady_ms();
	return until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
}

static void *poller_main(void *arg)
{
	struct poller *poller = arg;
	struct epoll_event events[BATCH];
	int timeout_ms;

	pthread_setname_np(pthread_self(), "http-poller");
	while ((timeout_ms = run_alarms(poller)) != -2) {
		int count = epoll_wait(poller->epoll_fd, events, BATCH, timeout_ms);

		for (int i = 0; i < count; i++) {
			uint64_t drained;

			if (events[i].data.u64 != UINT64_MAX)
				dispatch(poller, &events[i]);
			else if (read(poller->wake_fd, &drained, sizeof(drained)) < 0)
				continue;
		}
	}
	return NULL;
}

int poller_open(struct poller **ret_poller, struct err *err)
{
	struct poller *poller = mem_new(sizeof(*poller));
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
	int r;

	pthread_mutex_init(&poller->lock, NULL);
	poller->wait_until_ms = UINT64_MAX;
	poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	poller->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (poller->epoll_fd < 0 || poller->wake_fd < 0 ||
		epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, poller->wake_fd, &event) < 0) {
		r = err_sys(err, "create the poller of the HTTP server");
		poller_close(poller);
		return r;
	}
	r = -pthread_create(&poller->thread, NULL, poller_main, poller);
	if (r < 0) {
		poller_close(poller);
		return err_from(err, r, "start the poller of the HTTP server");
	}
	poller->has_thread = true;
	*ret_poller = poller;
	return 0;
}

void poller_close(struct poller *poller)
{
	if (!poller)
		return;
	if (poller->has_thread) {
		pthread_mutex_lock(&poller->lock);
		poller->stopping = true;
		pthread_mutex_unlock(&poller->lock);
		wake(poller);
		pthread_join(poller->thread, NULL);
	}
	fd_close(poller->epoll_fd);
	fd_close(poller->wake_fd);
	pthread_mutex_destroy(&poller->lock);
	free(poller->slots);
	free(poller);
}

/* The slot of a new watch; the table grows and never shrinks, bounded by the open descriptors. */
static int take_slot(struct poller *poller, struct poller_watch *watch)
{
	uint32_t index;

	if (poller->first_free == 0) {
		uint32_t count = poller->slot_count ? poller->slot_count * 2 : 64;
		struct slot *slots = realloc(poller->slots, count * sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		memset(slots + poller->slot_count, 0,
			(count - poller->slot_count) * sizeof(*slots));
		for (index = count; index-- > poller->slot_count;) {
			slots[index].next_free = poller->first_free;
			poller->first_free = index + 1;
		}
		poller->slots = slots;
		poller->slot_count = count;
	}
	index = poller->first_free - 1;
	poller->first_free = poller->slots[index].next_free;
	poller->slots[index].watch = watch;
	watch->slot = index + 1;
	return 0;
}

static void leave_slot(struct poller *poller, struct poller_watch *watch)
{
	uint32_t index = watch->slot - 1;

	poller->slots[index].watch = NULL;
	poller->slots[index].generation++;
	poller->slots[index].next_free = poller->first_free;
	poller->first_free = index + 1;
	watch->slot = 0;
}

int poller_arm(struct poller *poller, struct poller_watch *watch, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT};
	int op = EPOLL_CTL_MOD;
	int r = 0;

	pthread_mutex_lock(&poller->lock);
	if (watch->slot == 0) {
		op = EPOLL_CTL_ADD;
		watch->fd = fd;
		r = take_slot(poller, watch);
	}
	assert(watch->fd == fd);
	if (r == 0) {
		event.data.u64 =
			event_key(watch->slot - 1, poller->slots[watch->slot - 1].generation);
		if (epoll_ctl(poller->epoll_fd, op, fd, &event) < 0) {
			r = -errno;
			if (op == EPOLL_CTL_ADD)
				leave_slot(poller, watch);
		}
	}
	pthread_mutex_unlock(&poller->lock);
	return r;
}

void poller_forget(struct poller *poller, struct poller_watch *watch)
{
	/* Read without the lock: only the owner arms and forgets, and it does not do both at once. */
	if (watch->slot == 0)
		return;
	pthread_mutex_lock(&poller->lock);
	epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	leave_slot(poller, watch);
	pthread_mutex_unlock(&poller->lock);
}

void poller_set_alarm(struct poller *poller, struct poller_alarm *alarm, uint64_t due_ms)
{
	bool sooner = false;

	pthread_mutex_lock(&poller->lock);
	if (alarm->due_ms)
		unlink_alarm(poller, alarm);
	if (due_ms) {
		alarm->due_ms = due_ms;
		alarm->next = poller->alarms;
		if (alarm->next)
			alarm->next->prev = alarm;
		poller->alarms = alarm;
		sooner = due_ms < poller->wait_until_ms;
		if (sooner)
			poller->wait_until_ms = due_ms;
	}
	pthread_mutex_unlock(&poller->lock);
	/* From a callback: the thread looks at the alarms before it sleeps. */
	if (sooner && !pthread_equal(pthread_self(), poller->thread))
		wake(poller);
}
