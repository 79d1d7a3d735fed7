/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/terminator.h"

#include "base/clock.h"
#include "base/fd.h"
#include "event/timer.h"
#include "tls/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MAX 16
#define TICK_MS	    1000
#define CLOSE_MS    2000
#define UNSENT_MAX  (128 * 1024) /* in the kernel; more waits with whoever serves the client */

struct terminator_thread {
	struct event_loop *loop;
	struct timer *ticks;
	struct relay *relays;
	unsigned counts[RELAY_CLASSES];
	unsigned max_of_class;
	struct post closing;
	struct timer *last_moment; /* NULL: it is not closing */
	uint8_t scratch[RELAY_BYTES];
};

struct terminator {
	struct certificate *certificate;
	struct terminator_thread *threads[THREADS_MAX];
	unsigned thread_count;
	atomic_uint next;
};

/* --- relays of a thread --- */

/* It is dropped in its next turn. */
static void end(struct relay *relay)
{
	relay->state = RELAY_OVER;
	event_loop_post(relay->thread->loop, &relay->turn);
}

static void drop(struct relay *relay)
{
	struct terminator_thread *thread = relay->thread;

	if (relay->prev)
		relay->prev->next = relay->next;
	else
		thread->relays = relay->next;
	if (relay->next)
		relay->next->prev = relay->prev;
	thread->counts[relay->class]--;
	watch_close(relay->outer.watch);
	watch_close(relay->inner.watch);
	relay_free(relay);
}

/* Where a class has too many, of a source or (0) of all, the one that has been there for the longest gives way. */
static void end_excess(
	struct terminator_thread *thread, enum relay_class class, uint64_t source, unsigned max)
{
	struct relay *longest = NULL;
	unsigned count = 0;

	if (thread->counts[class] <= max)
		return;
	for (struct relay *relay = thread->relays; relay; relay = relay->next) {
		if (relay->class != class || relay->state == RELAY_OVER ||
			(source && relay->source != source))
			continue;
		count++;
		if (!longest || relay->since_ms <= longest->since_ms)
			longest = relay;
	}
	if (count > max)
		end(longest);
}

static enum relay_class class_of(const struct relay *relay)
{
	switch (relay->state) {
	case RELAY_HANDSHAKE:
		return RELAY_ARRIVING;
	case RELAY_LEAVING:
	case RELAY_LINGER:
		return RELAY_PARTING;
	default:
		return RELAY_UNCOUNTED;
	}
}

static void recount(struct relay *relay)
{
	struct terminator_thread *thread = relay->thread;
	enum relay_class class = class_of(relay);

	if (class == relay->class)
		return;
	thread->counts[relay->class]--;
	thread->counts[class]++;
	relay->class = class;
	relay->since_ms = clock_steady_ms();
	if (class == RELAY_ARRIVING)
		end_excess(thread, class, relay->source, (thread->max_of_class + 1) / 2);
	if (class != RELAY_UNCOUNTED)
		end_excess(thread, class, 0, thread->max_of_class);
}

/* Whether it has nothing to send that would be worth a moment when the thread closes. */
static bool is_idle(const struct relay *relay)
{
	return relay->state == RELAY_HANDSHAKE || relay->state == RELAY_LINGER;
}

static void move(void *arg)
{
	struct relay *relay = arg;
	struct terminator_thread *thread = relay->thread;
	bool has_more;

	if (relay->state == RELAY_OVER) {
		drop(relay);
		if (thread->last_moment && !thread->relays)
			event_loop_stop(thread->loop);
		return;
	}
	has_more = relay_move(relay, thread->scratch);
	if (thread->last_moment && is_idle(relay))
		relay->state = RELAY_OVER;
	recount(relay);
	if (has_more || relay->state == RELAY_OVER)
		event_loop_post(thread->loop, &relay->turn);
}

static void end_ready(void *arg, uint32_t events)
{
	struct relay_end *side = arg;
	struct relay *relay = side->relay;

	relay_note(side, events);
	event_loop_post(relay->thread->loop, &relay->turn);
}

static int watch_end(struct relay_end *side)
{
	return watch_open(side->relay->thread->loop, side->fd,
		EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, end_ready, NULL, side, &side->watch,
		NULL);
}

/* A relay's first turn. */
static void join(void *arg)
{
	struct relay *relay = arg;
	struct terminator_thread *thread = relay->thread;

	relay->turn.run = move;
	relay->next = thread->relays;
	if (relay->next)
		relay->next->prev = relay;
	thread->relays = relay;
	thread->counts[relay->class]++;
	recount(relay);
	if (watch_end(&relay->outer) < 0 || watch_end(&relay->inner) < 0)
		relay->state = RELAY_OVER;
	event_loop_post(thread->loop, &relay->turn);
}

/* --- the thread --- */

static void tick(void *arg)
{
	struct terminator_thread *thread = arg;
	uint64_t now = clock_steady_ms();

	for (struct relay *relay = thread->relays; relay; relay = relay->next) {
		if (now >= relay->due_ms)
			end(relay);
	}
	timer_set(thread->ticks, TICK_MS);
}

static void stop(void *arg)
{
	struct terminator_thread *thread = arg;

	event_loop_stop(thread->loop);
}

/* The thread ends when nothing is left to be sent, or a moment later. */
static void start_closing(void *arg)
{
	struct terminator_thread *thread = arg;

	thread->last_moment = timer_open(thread->loop, stop, NULL, thread);
	timer_set(thread->last_moment, thread->relays ? CLOSE_MS : 0);
	for (struct relay *relay = thread->relays; relay; relay = relay->next) {
		if (is_idle(relay))
			end(relay);
	}
}

static void thread_close(struct terminator_thread *thread)
{
	event_loop_join(thread->loop);
	while (thread->relays)
		drop(thread->relays);
	timer_close(thread->ticks);
	timer_close(thread->last_moment);
	event_loop_close(thread->loop);
	free(thread);
}

static int thread_open(
	unsigned max_of_class, struct terminator_thread **ret_thread, struct err *err)
{
	struct terminator_thread *thread = mem_new(sizeof(*thread));
	int r;

	thread->max_of_class = max_of_class;
	thread->closing = (struct post){.run = start_closing, .arg = thread};
	r = event_loop_open("tls", NULL, &thread->loop, err);
	if (r < 0) {
		free(thread);
		return r;
	}
	thread->ticks = timer_open(thread->loop, tick, NULL, thread);
	timer_set(thread->ticks, TICK_MS);
	*ret_thread = thread;
	return 0;
}

int terminator_open(struct certificate *certificate, unsigned threads, unsigned max_of_class,
	struct terminator **ret_terminator, struct err *err)
{
	struct terminator *terminator = mem_new(sizeof(*terminator));
	int r = 0;

	terminator->certificate = certificate;
	for (unsigned i = 0; r == 0 && i < threads && i < THREADS_MAX; i++) {
		r = thread_open(max_of_class, &terminator->threads[i], err);
		terminator->thread_count += r == 0;
	}
	if (r < 0)
		terminator_close(terminator);
	else
		*ret_terminator = terminator;
	return r;
}

void terminator_close(struct terminator *terminator)
{
	if (!terminator)
		return;
	for (unsigned i = 0; i < terminator->thread_count; i++) {
		struct terminator_thread *thread = terminator->threads[i];

		event_loop_post(thread->loop, &thread->closing);
	}
	for (unsigned i = 0; i < terminator->thread_count; i++)
		thread_close(terminator->threads[i]);
	free(terminator);
}

int terminator_wrap(struct terminator *terminator, int sock, uint64_t source, int *ret_plain,
	struct tls_peer **ret_peer)
{
	unsigned turn = atomic_fetch_add(&terminator->next, 1) % terminator->thread_count;
	auto_fd int outer = sock;
	struct tls_peer *peer;
	struct relay *relay;
	int pair[2];
	SSL *ssl;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	ssl = certificate_accept(terminator->certificate, outer);
	if (!ssl) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		return -ENOMEM;
	}
	setsockopt(outer, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(outer, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
	peer = tls_peer_new();
	relay = relay_open(ssl, take_fd(&outer), pair[0], peer);
	relay->source = source;
	relay->thread = terminator->threads[turn];
	relay->turn = (struct post){.run = join, .arg = relay};
	event_loop_post(relay->thread->loop, &relay->turn);
	*ret_plain = pair[1];
	*ret_peer = peer;
	return 0;
}
