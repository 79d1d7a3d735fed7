/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/terminator.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "tls/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MAX 16
#define EVENTS	    64
#define TICK_MS	    1000
#define CLOSE_MS    2000
#define CROWD_MAX   1024	 /* of a thread, in each crowd */
#define SOURCE_MAX  512		 /* of these, in handshakes of one source */
#define UNSENT_MAX  (128 * 1024) /* in the kernel; more waits with whoever serves the client */

struct thread {
	pthread_t id;
	bool is_running;
	int epoll_fd, wake_fd;
	atomic_bool stopping;

	struct relay *relays;
	struct relay *ready;
	unsigned counts[RELAY_CROWDS];
	uint64_t ticked_ms;
	uint8_t scratch[RELAY_BYTES];

	pthread_mutex_t lock;
	struct relay *newcomers, **newcomers_end; /* in their order */
};

struct terminator {
	struct certificate *certificate;
	struct thread *threads[THREADS_MAX];
	unsigned thread_count;
	atomic_uint next;
};

/* --- relays of a thread --- */

static int watch(struct thread *thread, struct relay_end *end)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = end};

	return epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, end->fd, &event) < 0 ? -errno : 0;
}

static void make_ready(struct thread *thread, struct relay *relay)
{
	if (relay->is_ready)
		return;
	relay->is_ready = true;
	relay->next_ready = thread->ready;
	thread->ready = relay;
}

/* It is dropped with the queue: no event that was fetched may name one that is gone. */
static void end(struct thread *thread, struct relay *relay)
{
	relay->state = RELAY_OVER;
	make_ready(thread, relay);
}

static void drop(struct thread *thread, struct relay *relay)
{
	if (relay->prev)
		relay->prev->next = relay->next;
	else
		thread->relays = relay->next;
	if (relay->next)
		relay->next->prev = relay->prev;
	thread->counts[relay->crowd]--;
	epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, relay->outer.fd, NULL);
	epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, relay->inner.fd, NULL);
	relay_free(relay);
}

/* Where a crowd has too many, of a source or (0) of all, the one that has been there for the longest gives way. */
static void end_excess(struct thread *thread, enum relay_crowd crowd, uint64_t source, unsigned max)
{
	struct relay *longest = NULL;
	unsigned count = 0;

	if (thread->counts[crowd] <= max)
		return;
	for (struct relay *relay = thread->relays; relay; relay = relay->next) {
		if (relay->crowd != crowd || relay->state == RELAY_OVER ||
			(source && relay->source != source))
			continue;
		count++;
		if (!longest || relay->since_ms <= longest->since_ms)
			longest = relay;
	}
	if (count > max)
		end(thread, longest);
}

static enum relay_crowd crowd_of(const struct relay *relay)
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

static void recount(struct thread *thread, struct relay *relay)
{
	enum relay_crowd crowd = crowd_of(relay);

	if (crowd == relay->crowd)
		return;
	thread->counts[relay->crowd]--;
	thread->counts[crowd]++;
	relay->crowd = crowd;
	relay->since_ms = clock_steady_ms();
	if (crowd == RELAY_ARRIVING)
		end_excess(thread, crowd, relay->source, SOURCE_MAX);
	if (crowd != RELAY_UNCOUNTED)
		end_excess(thread, crowd, 0, CROWD_MAX);
}

static void move_ready(struct thread *thread)
{
	struct relay *ready = take_ptr(&thread->ready);

	while (ready) {
		struct relay *relay = ready;

		ready = relay->next_ready;
		relay->is_ready = false;
		if (relay->state != RELAY_OVER && relay_move(relay, thread->scratch))
			make_ready(thread, relay);
		recount(thread, relay);
		if (relay->state == RELAY_OVER && !relay->is_ready)
			drop(thread, relay);
	}
}

static void add_newcomers(struct thread *thread)
{
	struct relay *relay;
	uint64_t count;

	(void)!read(thread->wake_fd, &count, sizeof(count));
	pthread_mutex_lock(&thread->lock);
	relay = take_ptr(&thread->newcomers);
	thread->newcomers_end = &thread->newcomers;
	pthread_mutex_unlock(&thread->lock);
	while (relay) {
		struct relay *next = relay->next;

		relay->next = thread->relays;
		if (relay->next)
			relay->next->prev = relay;
		thread->relays = relay;
		thread->counts[relay->crowd]++;
		recount(thread, relay);
		if (watch(thread, &relay->outer) < 0 || watch(thread, &relay->inner) < 0)
			relay->state = RELAY_OVER;
		make_ready(thread, relay);
		relay = next;
	}
}

/* --- the thread --- */

static void tick(struct thread *thread)
{
	uint64_t now = clock_steady_ms();

	if (now - thread->ticked_ms < TICK_MS)
		return;
	thread->ticked_ms = now;
	for (struct relay *relay = thread->relays; relay; relay = relay->next) {
		if (now >= relay->due_ms)
			end(thread, relay);
	}
}

static void turn(struct thread *thread)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(thread->epoll_fd, events, EVENTS, thread->ready ? 0 : TICK_MS);

	for (int i = 0; i < count; i++) {
		struct relay_end *side = events[i].data.ptr;

		if (!side) {
			add_newcomers(thread);
		} else {
			relay_note(side, events[i].events);
			make_ready(thread, side->relay);
		}
	}
	move_ready(thread);
	tick(thread);
}

/* Only what still has something to send is worth a moment. */
static void finish(struct thread *thread)
{
	uint64_t by = clock_steady_ms() + CLOSE_MS;

	while (thread->relays && clock_steady_ms() < by) {
		for (struct relay *relay = thread->relays; relay; relay = relay->next) {
			if (relay->state == RELAY_HANDSHAKE || relay->state == RELAY_LINGER)
				end(thread, relay);
		}
		turn(thread);
	}
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;

	pthread_setname_np(pthread_self(), "tls");
	while (!atomic_load(&thread->stopping))
		turn(thread);
	add_newcomers(thread);
	finish(thread);
	while (thread->relays)
		drop(thread, thread->relays);
	return NULL;
}

static void wake(struct thread *thread)
{
	/* Full (EAGAIN) means that it is being woken anyway. */
	(void)!write(thread->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

static void thread_close(struct thread *thread)
{
	if (thread->is_running) {
		atomic_store(&thread->stopping, true);
		wake(thread);
		pthread_join(thread->id, NULL);
	}
	fd_close(thread->epoll_fd);
	fd_close(thread->wake_fd);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
}

/* Signals are the main thread's business; and OpenSSL writes to sockets in a way that raises SIGPIPE. */
static int start(struct thread *thread)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread->id, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	thread->is_running = r == 0;
	return r;
}

static int thread_open(struct thread **ret_thread, struct err *err)
{
	struct thread *thread = mem_new(sizeof(*thread));
	struct epoll_event wakes = {.events = EPOLLIN};
	int r;

	pthread_mutex_init(&thread->lock, NULL);
	thread->newcomers_end = &thread->newcomers;
	thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (thread->epoll_fd < 0 || thread->wake_fd < 0 ||
		epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->wake_fd, &wakes) < 0)
		r = err_sys(err, "open a loop for TLS");
	else if ((r = start(thread)) < 0)
		err_from(err, r, "start a thread for TLS");
	if (r < 0)
		thread_close(thread);
	else
		*ret_thread = thread;
	return r;
}

/* --- the terminator --- */

int terminator_open(struct certificate *certificate, unsigned threads,
	struct terminator **ret_terminator, struct err *err)
{
	struct terminator *terminator = mem_new(sizeof(*terminator));
	int r = 0;

	terminator->certificate = certificate;
	for (unsigned i = 0; r == 0 && i < threads && i < THREADS_MAX; i++) {
		r = thread_open(&terminator->threads[i], err);
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
	for (unsigned i = 0; i < terminator->thread_count; i++)
		thread_close(terminator->threads[i]);
	free(terminator);
}

static void give(struct thread *thread, struct relay *relay)
{
	pthread_mutex_lock(&thread->lock);
	*thread->newcomers_end = relay;
	thread->newcomers_end = &relay->next;
	pthread_mutex_unlock(&thread->lock);
	wake(thread);
}

int terminator_wrap(struct terminator *terminator, int sock, uint64_t source, int *ret_plain,
	struct dossier **ret_dossier)
{
	unsigned turn = atomic_fetch_add(&terminator->next, 1) % terminator->thread_count;
	auto_fd int outer = sock;
	struct dossier *dossier;
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
	dossier = dossier_new();
	relay = relay_open(ssl, take_fd(&outer), pair[0], dossier);
	relay->source = source;
	give(terminator->threads[turn], relay);
	*ret_plain = pair[1];
	*ret_dossier = dossier;
	return 0;
}
