/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "event/event_loop_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define RELEASE_US                                                                                 \
	2000 /* until what was closed while the thread waits is released, with others that are closed then */

struct watch {
	struct handle handle;
	int fd;
	void (*ready)(void *arg, uint32_t events);
	struct post again;
};

void event_loop_lock_guard(struct event_loop *loop)
{
	if (loop->guard)
		pthread_mutex_lock(loop->guard);
}

void event_loop_unlock_guard(struct event_loop *loop)
{
	if (loop->guard)
		pthread_mutex_unlock(loop->guard);
}

void event_loop_wake(struct event_loop *loop)
{
	if (!loop->is_waiting)
		return;
	loop->is_waiting = false;
	(void)!write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

void event_loop_wake_at(struct event_loop *loop, uint64_t due_us)
{
	uint64_t now_us = clock_steady_us(), left_us = due_us > now_us ? due_us - now_us : 1;
	const struct itimerspec left = {.it_value = {.tv_sec = (time_t)(left_us / 1000000),
						.tv_nsec = (long)(left_us % 1000000) * 1000}};

	if (!loop->is_waiting || (loop->alarm_us && loop->alarm_us <= due_us))
		return;
	if (timerfd_settime(loop->alarm_fd, 0, &left, NULL) < 0)
		event_loop_wake(loop);
	else
		loop->alarm_us = due_us;
}

/* --- the thread --- */

/* Under the guard, so that its holder cannot close the watch meanwhile. */
static void call_watch(struct watch *watch, uint32_t events)
{
	if (!atomic_load(&watch->handle.is_closed))
		watch->ready(watch->handle.arg, events);
}

static void run_again(void *arg)
{
	call_watch(arg, 0);
}

/* Waits and calls what is ready; false: the loop was stopped. */
static bool serve_events(struct event_loop *loop)
{
	struct epoll_event events[EVENTS_MAX];
	int timeout_ms, count;
	bool is_stopping;

	pthread_mutex_lock(&loop->lock);
	timeout_ms = loop->posts || loop->closed ? 0 : timer_wait_ms(loop);
	is_stopping = loop->is_stopping;
	loop->is_waiting = !is_stopping && timeout_ms != 0;
	loop->alarm_us = 0;
	pthread_mutex_unlock(&loop->lock);
	if (is_stopping)
		return false;
	count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, timeout_ms);
	timer_run_due(loop);
	for (int i = 0; i < count; i++) {
		uint64_t wakes;

		if (events[i].data.ptr == loop)
			continue; /* the alarm: what is due was called above, and what is closed is released below */
		if (!events[i].data.ptr) {
			(void)!read(loop->wake_fd, &wakes, sizeof(wakes));
			continue;
		}
		event_loop_lock_guard(loop);
		call_watch(events[i].data.ptr, events[i].events);
		event_loop_unlock_guard(loop);
	}
	return true;
}

static struct post *take_post(struct event_loop *loop)
{
	struct post *post;

	pthread_mutex_lock(&loop->lock);
	post = loop->posts;
	loop->posts = post->next;
	if (!loop->posts)
		loop->last_post = &loop->posts;
	loop->post_count--;
	post->is_pending = false;
	pthread_mutex_unlock(&loop->lock);
	return post;
}

static void release_all(struct handle *handle)
{
	while (handle) {
		struct handle *next = handle->next;

		if (handle->release)
			handle->release(handle->arg);
		free(handle);
		handle = next;
	}
}

static void run_posts(struct event_loop *loop)
{
	struct handle *closed;
	size_t count;

	/* Both at once: a watch that is closed from here on may have posted another call before. */
	pthread_mutex_lock(&loop->lock);
	closed = take_ptr(&loop->closed);
	count = loop->post_count;
	pthread_mutex_unlock(&loop->lock);
	while (count-- > 0) {
		struct post *post = take_post(loop);

		event_loop_lock_guard(loop);
		post->run(post->arg);
		event_loop_unlock_guard(loop);
	}
	release_all(closed);
}

static void *thread_main(void *arg)
{
	struct event_loop *loop = arg;

	pthread_setname_np(pthread_self(), loop->name);
	while (serve_events(loop))
		run_posts(loop);
	return NULL;
}

/* Signals are for the main thread; and OpenSSL writes to sockets in a way that raises SIGPIPE. */
static int start_thread(struct event_loop *loop)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&loop->thread, NULL, thread_main, loop);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	loop->has_thread = r == 0;
	return r;
}

int event_loop_open(
	const char *name, pthread_mutex_t *guard, struct event_loop **ret_loop, struct err *err)
{
	struct event_loop *loop = mem_new(sizeof(*loop));
	struct epoll_event event = {.events = EPOLLIN};
	/* Edges, so that nobody has to read it. */
	struct epoll_event alarm = {.events = EPOLLIN | EPOLLET, .data.ptr = loop};
	int r;

	snprintf(loop->name, sizeof(loop->name), "%s", name);
	loop->guard = guard;
	loop->last_post = &loop->posts;
	pthread_mutex_init(&loop->lock, NULL);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->wake_fd < 0 || loop->alarm_fd < 0 ||
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0 ||
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->alarm_fd, &alarm) < 0) {
		r = err_sys(err, "open the event loop %s", name);
	} else {
		r = start_thread(loop);
		if (r < 0)
			err_from(err, r, "start the thread of the event loop %s", name);
	}
	if (r < 0) {
		event_loop_close(loop);
		return r;
	}
	*ret_loop = loop;
	return 0;
}

void event_loop_stop(struct event_loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	loop->is_stopping = true;
	event_loop_wake(loop);
	pthread_mutex_unlock(&loop->lock);
}

void event_loop_join(struct event_loop *loop)
{
	if (loop->has_thread)
		pthread_join(loop->thread, NULL);
	loop->has_thread = false;
}

void event_loop_close(struct event_loop *loop)
{
	if (!loop)
		return;
	event_loop_stop(loop);
	event_loop_join(loop);
	/* A release may close another one. */
	while (loop->closed)
		release_all(take_ptr(&loop->closed));
	fd_close(loop->epoll_fd);
	fd_close(loop->wake_fd);
	fd_close(loop->alarm_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop->timers.timers);
	free(loop);
}

/* --- watches --- */

static int control(struct watch *watch, int what, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(watch->handle.loop->epoll_fd, what, watch->fd, &event) < 0 ? -errno : 0;
}

int watch_open(struct event_loop *loop, int fd, uint32_t events,
	void (*ready)(void *arg, uint32_t events), void (*release)(void *arg), void *arg,
	struct watch **ret_watch, struct err *err)
{
	struct watch *watch = mem_new(sizeof(*watch));
	int r;

	*watch = (struct watch){.handle = {.loop = loop, .release = release, .arg = arg},
		.fd = fd,
		.ready = ready,
		.again = {.run = run_again, .arg = watch}};
	*ret_watch = watch;
	r = control(watch, EPOLL_CTL_ADD, events);
	if (r < 0) {
		*ret_watch = NULL;
		free(watch);
		return err_from(err, r, "watch a descriptor");
	}
	return 0;
}

void watch_set(struct watch *watch, uint32_t events)
{
	int r = control(watch, EPOLL_CTL_MOD, events);

	if (r < 0)
		log_error("change a watch: %s", strerror(-r));
}

void event_loop_retire(struct event_loop *loop, struct handle *handle)
{
	atomic_store(&handle->is_closed, true);
	handle->next = loop->closed;
	loop->closed = handle;
	event_loop_wake_at(loop, clock_steady_us() + RELEASE_US);
}

void watch_close(struct watch *watch)
{
	struct event_loop *loop;

	if (!watch)
		return;
	loop = watch->handle.loop;
	pthread_mutex_lock(&loop->lock);
	if (!atomic_load(&watch->handle.is_closed)) {
		(void)!control(watch, EPOLL_CTL_DEL, 0);
		event_loop_retire(loop, &watch->handle);
	}
	pthread_mutex_unlock(&loop->lock);
}

/* --- posts --- */

/* The lock is held. */
static void post_locked(struct event_loop *loop, struct post *post)
{
	if (post->is_pending)
		return;
	post->is_pending = true;
	post->next = NULL;
	*loop->last_post = post;
	loop->last_post = &post->next;
	loop->post_count++;
	event_loop_wake(loop);
}

void event_loop_post(struct event_loop *loop, struct post *post)
{
	pthread_mutex_lock(&loop->lock);
	post_locked(loop, post);
	pthread_mutex_unlock(&loop->lock);
}

void watch_call_again(struct watch *watch)
{
	struct event_loop *loop = watch->handle.loop;

	pthread_mutex_lock(&loop->lock);
	if (!atomic_load(&watch->handle.is_closed))
		post_locked(loop, &watch->again);
	pthread_mutex_unlock(&loop->lock);
}
