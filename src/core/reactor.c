/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reactor.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct watch {
	struct reactor *reactor;
	int fd;
	void (*ready)(void *arg, uint32_t events);
	void (*release)(void *arg);
	void *arg;
	atomic_bool closed;
	struct watch *next; /* in the graveyard */
};

struct reactor {
	pthread_t thread;
	pthread_mutex_t lock; /* graveyard, stopping */
	struct watch *graveyard;
	bool stopping;
	int epoll_fd;
	int wake_fd;
};

static void bury(struct reactor *reactor)
{
	struct watch *watch;

	pthread_mutex_lock(&reactor->lock);
	watch = take_ptr(&reactor->graveyard);
	pthread_mutex_unlock(&reactor->lock);
	while (watch) {
		struct watch *next = watch->next;

		if (watch->release)
			watch->release(watch->arg);
		free(watch);
		watch = next;
	}
}

static bool is_stopping(struct reactor *reactor)
{
	bool stopping;

	pthread_mutex_lock(&reactor->lock);
	stopping = reactor->stopping;
	pthread_mutex_unlock(&reactor->lock);
	return stopping;
}

static void *run(void *arg)
{
	struct reactor *reactor = arg;
	struct epoll_event events[64];

	pthread_setname_np(pthread_self(), "reactor");
	while (!is_stopping(reactor)) {
		int n = epoll_wait(reactor->epoll_fd, events, array_len(events), -1);

		for (int i = 0; i < n; i++) {
			struct watch *watch = events[i].data.ptr;
			uint64_t wakes;

			if (!watch)
				(void)!read(reactor->wake_fd, &wakes, sizeof(wakes));
			else if (!atomic_load(&watch->closed))
				watch->ready(watch->arg, events[i].events);
		}
		/* Only now: a watch closed during this round may be named in it again. */
		bury(reactor);
	}
	bury(reactor);
	return NULL;
}

static void wake(struct reactor *reactor)
{
	(void)!write(reactor->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

int reactor_open(struct reactor **ret_reactor, struct err *err)
{
	struct reactor *reactor = mem_new(sizeof(*reactor));
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	pthread_mutex_init(&reactor->lock, NULL);
	reactor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	reactor->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (reactor->epoll_fd < 0 || reactor->wake_fd < 0 ||
		epoll_ctl(reactor->epoll_fd, EPOLL_CTL_ADD, reactor->wake_fd, &event) < 0) {
		r = err_sys(err, "open the reactor");
	} else {
		r = -pthread_create(&reactor->thread, NULL, run, reactor);
		if (r < 0)
			err_from(err, r, "start the reactor");
	}
	if (r < 0) {
		fd_close(reactor->epoll_fd);
		fd_close(reactor->wake_fd);
		free(reactor);
		return r;
	}
	*ret_reactor = reactor;
	return 0;
}

void reactor_close(struct reactor *reactor)
{
	if (!reactor)
		return;
	pthread_mutex_lock(&reactor->lock);
	reactor->stopping = true;
	pthread_mutex_unlock(&reactor->lock);
	wake(reactor);
	pthread_join(reactor->thread, NULL);
	close(reactor->epoll_fd);
	close(reactor->wake_fd);
	pthread_mutex_destroy(&reactor->lock);
	free(reactor);
}

int watch_open(struct reactor *reactor, int fd, uint32_t events,
	void (*ready)(void *arg, uint32_t events), void (*release)(void *arg), void *arg,
	struct watch **ret_watch, struct err *err)
{
	struct watch *watch = mem_new(sizeof(*watch));
	struct epoll_event event = {.events = events, .data.ptr = watch};

	*watch = (struct watch){
		.reactor = reactor, .fd = fd, .ready = ready, .release = release, .arg = arg};
	/* Before it can be called: the function may look at it. */
	*ret_watch = watch;
	if (epoll_ctl(reactor->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		*ret_watch = NULL;
		free(watch);
		return err_sys(err, "watch a descriptor");
	}
	return 0;
}

void watch_set(struct watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(watch->reactor->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) < 0)
		log_error("change a watch: %s", strerror(errno));
}

void watch_close(struct watch *watch)
{
	struct reactor *reactor;

	if (!watch || atomic_exchange(&watch->closed, true))
		return;
	reactor = watch->reactor;
	epoll_ctl(reactor->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	pthread_mutex_lock(&reactor->lock);
	watch->next = reactor->graveyard;
	reactor->graveyard = watch;
	pthread_mutex_unlock(&reactor->lock);
	wake(reactor);
}
