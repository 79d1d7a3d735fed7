/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy_loop.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/listener.h"
#include "http/sources.h"
#include "proxy/proxy_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS	     64
#define ACCEPT_BATCH 16
#define TICK_MS	     1000
#define LATER_MS     50 /* while somebody waits for an app */

struct proxy_loop {
	struct proxy *proxy;
	const struct proxy_config *config;
	pthread_t thread;
	bool has_thread;
	int epoll_fd, wake_fd;
	atomic_bool stopping;

	struct passage *passages;
	struct passage *dropped; /* over, and freed when no event can name them any more */
	uint64_t ticked_ms;
	bool is_full;	/* no client is accepted */
	unsigned later; /* how many ask again */

	pthread_mutex_t lock;
	struct passage *found; /* by workers */
};

/* --- passages --- */

static int control(struct proxy_loop *loop, int what, struct side *side)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = side};

	return epoll_ctl(loop->epoll_fd, what, side->fd, &event) < 0 ? -errno : 0;
}

int proxy_loop_watch(struct proxy_loop *loop, struct side *side)
{
	return control(loop, EPOLL_CTL_ADD, side);
}

/* Said to the kernel before closing: a fork under way may hold a copy that would keep the events coming. */
void proxy_loop_unwatch(struct proxy_loop *loop, struct side *side)
{
	(void)!control(loop, EPOLL_CTL_DEL, side);
}

void proxy_loop_again(struct proxy_loop *loop, struct side *side)
{
	if (side->fd >= 0)
		(void)!control(loop, EPOLL_CTL_MOD, side);
}

static void unlink_passage(struct proxy_loop *loop, struct passage *passage)
{
	if (passage->prev)
		passage->prev->next = passage->next;
	else
		loop->passages = passage->next;
	if (passage->next)
		passage->next->prev = passage->prev;
}

void proxy_loop_drop(struct proxy_loop *loop, struct passage *passage)
{
	unlink_passage(loop, passage);
	passage->next = loop->dropped;
	loop->dropped = passage;
	proxy_bid_farewell(loop->proxy, passage);
	proxy_leave(loop->proxy);
}

static void free_dropped(struct proxy_loop *loop)
{
	while (loop->dropped) {
		struct passage *passage = loop->dropped;

		loop->dropped = passage->next;
		passage_free(passage);
	}
}

void proxy_loop_hurry(struct proxy_loop *loop)
{
	loop->later++;
}

void proxy_loop_find(struct proxy_loop *loop, struct passage *passage)
{
	proxy_find(loop->proxy, passage);
}

static void wake(struct proxy_loop *loop)
{
	(void)!write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

void proxy_loop_found(struct proxy_loop *loop, struct passage *passage)
{
	bool is_first;

	pthread_mutex_lock(&loop->lock);
	is_first = !loop->found;
	passage->next_waiting = loop->found;
	loop->found = passage;
	pthread_mutex_unlock(&loop->lock);
	if (is_first)
		wake(loop);
}

static void take_found(struct proxy_loop *loop)
{
	struct passage *found;
	uint64_t count;

	(void)!read(loop->wake_fd, &count, sizeof(count));
	pthread_mutex_lock(&loop->lock);
	found = take_ptr(&loop->found);
	pthread_mutex_unlock(&loop->lock);
	while (found) {
		struct passage *passage = found;

		found = passage->next_waiting;
		passage_found(passage);
	}
}

/* --- clients --- */

static void add_client(struct proxy_loop *loop, struct arrival *arrival)
{
	char text[64];
	struct passage *passage;

	listener_format(&arrival->address, text, sizeof(text));
	if (!loop->config->listener->terminator)
		setsockopt(arrival->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	passage = passage_open(loop, loop->config, take_fd(&arrival->fd), text);
	passage->source = sources_key((struct sockaddr *)&arrival->address);
	passage->is_local = arrival->is_local;
	passage->dossier = take_ptr(&arrival->dossier);
	listener_drop(arrival);
	if (!proxy_welcome(loop->proxy, passage) || proxy_loop_watch(loop, &passage->client) < 0) {
		proxy_bid_farewell(loop->proxy, passage);
		proxy_leave(loop->proxy);
		passage_free(passage);
		return;
	}
	passage->next = loop->passages;
	if (loop->passages)
		loop->passages->prev = passage;
	loop->passages = passage;
}

static int listen_to_clients(struct proxy_loop *loop)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = loop};

	loop->is_full = false;
	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->config->listener->fd, &event) < 0
		       ? -errno
		       : 0;
}

/* Clients for whom there is no place wait in the kernel's queue, and nobody looks there until the next tick. */
static void turn_away(struct proxy_loop *loop)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->config->listener->fd, NULL);
	loop->is_full = true;
}

static bool is_awaited(const struct proxy_loop *loop)
{
	struct pollfd waiting = {.fd = loop->config->listener->fd, .events = POLLIN};

	return poll(&waiting, 1, 0) > 0;
}

/* Whoever has been without a request for the longest makes room; false if there is none such. */
static bool give_way(struct proxy_loop *loop)
{
	struct passage *longest = NULL;

	for (struct passage *p = loop->passages; p; p = p->next) {
		if (passage_is_idle(p) && (!longest || p->moved_ms <= longest->moved_ms))
			longest = p;
	}
	if (longest)
		passage_cut(longest);
	return longest;
}

static void accept_clients(struct proxy_loop *loop)
{
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		bool has_place = proxy_admit(loop->proxy);
		struct arrival arrival;
		int r;

		if (!has_place && !is_awaited(loop))
			return;
		if (!has_place && !(give_way(loop) && proxy_admit(loop->proxy))) {
			turn_away(loop);
			return;
		}
		r = listener_accept(loop->config->listener, &arrival);
		if (r < 0) {
			proxy_leave(loop->proxy);
			if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM)
				turn_away(loop);
			return;
		}
		add_client(loop, &arrival);
	}
}

/* --- the thread --- */

static void tick(struct proxy_loop *loop, uint64_t now)
{
	loop->later = 0;
	for (struct passage *p = loop->passages, *next; p; p = next) {
		next = p->next;
		if (p->state == PASSAGE_LATER)
			loop->later++;
		passage_tick(p, now);
	}
	if (loop->is_full && listen_to_clients(loop) < 0)
		loop->is_full = true; /* to be tried again */
	loop->ticked_ms = now;
}

static int wait_ms(const struct proxy_loop *loop)
{
	return loop->later ? LATER_MS : TICK_MS;
}

static void handle(struct proxy_loop *loop, const struct epoll_event *event)
{
	if (event->data.ptr == loop)
		accept_clients(loop);
	else if (event->data.ptr == &loop->wake_fd)
		take_found(loop);
	else
		passage_ready(event->data.ptr, event->events);
}

static void *loop_main(void *arg)
{
	struct proxy_loop *loop = arg;
	struct epoll_event events[EVENTS];

	pthread_setname_np(pthread_self(), "preview-loop");
	while (!atomic_load(&loop->stopping)) {
		int count = epoll_wait(loop->epoll_fd, events, EVENTS, wait_ms(loop));
		uint64_t now;

		for (int i = 0; i < count; i++)
			handle(loop, &events[i]);
		now = clock_steady_ms();
		if (now - loop->ticked_ms >= (uint64_t)wait_ms(loop))
			tick(loop, now);
		free_dropped(loop);
	}
	return NULL;
}

int proxy_loop_open(struct proxy *proxy, const struct proxy_config *config,
	struct proxy_loop **ret_loop, struct err *err)
{
	struct proxy_loop *loop = mem_new(sizeof(*loop));
	struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = &loop->wake_fd};
	int r;

	loop->proxy = proxy;
	loop->config = config;
	pthread_mutex_init(&loop->lock, NULL);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->wake_fd < 0 || listen_to_clients(loop) < 0 ||
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &wakes) < 0) {
		r = err_sys(err, "open a loop of the previews");
		proxy_loop_free(loop);
		return r;
	}
	r = -pthread_create(&loop->thread, NULL, loop_main, loop);
	if (r < 0) {
		proxy_loop_free(loop);
		return err_from(err, r, "start a thread of the previews");
	}
	loop->has_thread = true;
	*ret_loop = loop;
	return 0;
}

void proxy_loop_stop(struct proxy_loop *loop)
{
	atomic_store(&loop->stopping, true);
	wake(loop);
	pthread_join(loop->thread, NULL);
	loop->has_thread = false;
}

void proxy_loop_free(struct proxy_loop *loop)
{
	while (loop->passages)
		proxy_loop_drop(loop, loop->passages);
	free_dropped(loop);
	fd_close(loop->epoll_fd);
	fd_close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}
