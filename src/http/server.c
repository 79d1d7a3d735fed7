/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing, and taking in connections: they are accepted by the poller's thread and spread
 * evenly over the loops.
 */
#include "http/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/loop.h"
#include "http/rates.h"
#include "http/request_private.h"
#include "http/server_private.h"
#include "http/sources.h"
#include "http/stream.h"
#include "http/websocket_list.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_WORKERS	    64
#define DEFAULT_CONNECTIONS 4096
#define QUEUE_PER_WORKER    16
#define WAITING_PER_WORKER  8 /* of one owner */
#define ACCEPT_BATCH	    64
#define ACCEPT_PAUSE_MS	    100
#define SHORTAGE_LOG_MS	    60000

static void listen_ready(void *owner, uint32_t events);

static const struct poller_ops listen_ops = {.ready = listen_ready};

struct server *server_ref(struct server *server)
{
	atomic_fetch_add(&server->refs, 1);
	return server;
}

void server_unref(struct server *server)
{
	if (!server || atomic_fetch_sub(&server->refs, 1) != 1)
		return;
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
	pthread_mutex_destroy(&server->accept_lock);
	pthread_mutex_destroy(&server->clients_lock);
	sources_free(server->sources);
	free(server);
}

void server_add_request(struct server *server, struct request *req)
{
	pthread_mutex_lock(&server->lock);
	req->next = server->requests;
	if (req->next)
		req->next->prev = req;
	server->requests = req;
	pthread_mutex_unlock(&server->lock);
}

void server_count_request(struct server *server, struct request *req)
{
	pthread_mutex_lock(&server->lock);
	req->is_counted = true;
	server->running++;
	pthread_mutex_unlock(&server->lock);
}

void server_remove_request(struct server *server, struct request *req)
{
	pthread_mutex_lock(&server->lock);
	if (req->prev)
		req->prev->next = req->next;
	else
		server->requests = req->next;
	if (req->next)
		req->next->prev = req->prev;
	if (req->is_counted && --server->running == 0)
		pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

/* Taking in connections. */

static void arm_listener(struct server *server)
{
	if (poller_arm(server->poller, &server->listen_watch, server->listener.fd, EPOLLIN) < 0)
		poller_set_alarm(
			server->poller, &server->listen_alarm, clock_steady_ms() + ACCEPT_PAUSE_MS);
}

static struct loop *quietest_loop(const struct server *server)
{
	struct loop *best = server->loops[0];

	for (unsigned i = 1; i < server->loop_count; i++)
		if (loop_connections(server->loops[i]) < loop_connections(best))
			best = server->loops[i];
	return best;
}

/* 0, or -errno of accept(). */
static int accept_one(struct server *server)
{
	struct arrival arrival;
	uint64_t source;
	int r = listener_accept(&server->listener, &arrival);

	if (r < 0)
		return r;
	source = sources_key((struct sockaddr *)&arrival.address);
	if (server_connection_came(server, source) || connection_give_way(server, &source)) {
		loop_take(quietest_loop(server), &arrival);
	} else {
		listener_drop(&arrival);
		server_connection_left(server, source);
	}
	return 0;
}

bool server_connection_came(struct server *server, uint64_t source)
{
	atomic_fetch_add(&server->connections, 1);
	return sources_enter(server->sources, source);
}

void server_connection_left(struct server *server, uint64_t source)
{
	sources_leave(server->sources, source);
	atomic_fetch_sub(&server->connections, 1);
	if (atomic_load(&server->accept_waits) && atomic_exchange(&server->accept_waits, false))
		poller_set_alarm(server->poller, &server->listen_alarm, 1);
}

/* Whoever asks waits in the backlog. One that is idle makes room for it, if there is one. */
static void wait_for_descriptors(struct server *server, int r)
{
	uint64_t now = clock_steady_ms();

	if (!server->shortage_logged_ms || now - server->shortage_logged_ms > SHORTAGE_LOG_MS) {
		log_warning("cannot accept a connection: %s", strerror(-r));
		server->shortage_logged_ms = now;
	}
	connection_give_way(server, NULL);
	poller_set_alarm(server->poller, &server->listen_alarm, now + ACCEPT_PAUSE_MS);
}

static bool is_full(struct server *server)
{
	return atomic_load(&server->connections) >= server->config.max_connections;
}

/* There is no room: one that is idle makes some if somebody waits, and then whoever leaves lets it in. */
static void wait_for_room(struct server *server)
{
	struct pollfd waiting = {.fd = server->listener.fd, .events = POLLIN};

	if (poll(&waiting, 1, 0) > 0)
		connection_give_way(server, NULL);
	else
		arm_listener(server);
}

/* Accepts what waits, up to a batch, and says when to look again. */
static void accept_waiting(struct server *server)
{
	int r = 0;

	for (int i = 0; i < ACCEPT_BATCH && r == 0; i++) {
		if (is_full(server)) {
			atomic_store(&server->accept_waits, true);
			if (is_full(server)) {
				wait_for_room(server);
				return;
			}
			atomic_store(&server->accept_waits, false);
		}
		r = accept_one(server);
	}
	if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM)
		wait_for_descriptors(server, r);
	else
		arm_listener(server);
}

static void listen_ready(void *owner, uint32_t events)
{
	struct server *server = owner;

	(void)events;
	pthread_mutex_lock(&server->accept_lock);
	if (server->listener.fd >= 0)
		accept_waiting(server);
	pthread_mutex_unlock(&server->accept_lock);
}

static void sweep(void *owner, uint32_t events)
{
	struct server *server = owner;

	(void)events;
	connection_sweep(server);
	websocket_list_sweep(server, clock_steady_ms());
	if (!atomic_load(&server->closing))
		poller_set_alarm(server->poller, &server->sweep_alarm,
			clock_steady_ms() + CONNECTION_SWEEP_MS);
}

static const struct poller_ops sweep_ops = {.ready = sweep};

static int open_loops(struct server *server, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int r = 0;

	server->loop_count = cores < 2 ? 2 : cores > 64 ? 64 : (unsigned)cores;
	server->loops = mem_new(server->loop_count * sizeof(*server->loops));
	for (unsigned i = 0; i < server->loop_count && r == 0; i++)
		r = loop_open(server, &server->loops[i], err);
	return r;
}

static int open_parts(struct server *server, struct err *err)
{
	int r = 0;

	if (server->config.listener)
		server->listener = *server->config.listener;
	else
		r = listener_open(server->config.bind, &server->listener, err);
	if (r < 0)
		return r;
	server->failures = rates_new(SERVER_FAILURES, SERVER_FAILURES_PER_SECOND);
	server->guard = guard_new(&server->listener, server->config.hosts);
	server->router = router_new(server->config.routes, server->config.route_count);
	r = workers_open(server->config.max_workers, server->config.max_workers * QUEUE_PER_WORKER,
		&server->workers, err);
	if (r == 0) {
		server->lanes =
			lanes_new(server->workers, server->config.max_workers * WAITING_PER_WORKER);
		r = poller_open(&server->poller, err);
	}
	if (r == 0)
		r = open_loops(server, err);
	if (r == 0) {
		arm_listener(server);
		sweep(server, 0);
	}
	return r;
}

int server_open(const struct server_config *config, struct server **ret_server, struct err *err)
{
	struct server *server = mem_new(sizeof(*server));
	pthread_condattr_t attr;
	sigset_t all, before;
	int r;

	atomic_init(&server->refs, 1);
	pthread_mutex_init(&server->lock, NULL);
	pthread_mutex_init(&server->accept_lock, NULL);
	pthread_mutex_init(&server->clients_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&server->changed, &attr);
	pthread_condattr_destroy(&attr);
	server->config = *config;
	if (!server->config.max_workers)
		server->config.max_workers = DEFAULT_WORKERS;
	if (!server->config.max_connections)
		server->config.max_connections = DEFAULT_CONNECTIONS;
	if (!server->config.max_per_source)
		server->config.max_per_source = (server->config.max_connections * 3 + 3) / 4;
	server->sources = sources_new(server->config.max_per_source);
	server->max_readers = (server->config.max_workers + 3) / 4;
	server->listener.fd = -1;
	server->listen_watch = (struct poller_watch){.ops = &listen_ops, .owner = server};
	server->listen_alarm = (struct poller_alarm){.ops = &listen_ops, .owner = server};
	server->sweep_alarm = (struct poller_alarm){.ops = &sweep_ops, .owner = server};
	if (getrandom(&server->id_seed, sizeof(server->id_seed), 0) < 0)
		server->id_seed = clock_steady_us();
	/* Signals are the main thread's business; new threads inherit this mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = open_parts(server, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		server_close(server, 0);
		return r;
	}
	*ret_server = server;
	return 0;
}

uint16_t server_port(const struct server *server)
{
	return server->listener.port;
}

static void stop_accepting(struct server *server)
{
	pthread_mutex_lock(&server->accept_lock);
	if (server->poller) {
		poller_forget(server->poller, &server->listen_watch);
		poller_set_alarm(server->poller, &server->listen_alarm, 0);
	}
	fd_close(take_fd(&server->listener.fd));
	pthread_mutex_unlock(&server->accept_lock);
}

/* Their clients see a clean end. A stream that begins later ends by itself (answer.c). */
static void finish_streams(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct request *req = server->requests; req; req = req->next) {
		struct stream *stream = NULL;

		pthread_mutex_lock(&req->lock);
		if (req->sending)
			stream = stream_ref(req->sending);
		pthread_mutex_unlock(&req->lock);
		if (stream)
			stream_finish(stream);
		stream_unref(stream);
	}
	pthread_mutex_unlock(&server->lock);
}

static void wait_for_requests(struct server *server, unsigned grace_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += grace_ms / 1000;
	until.tv_nsec += (long)(grace_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&server->lock);
	while ((server->running > 0 || server->websockets) &&
		pthread_cond_timedwait(&server->changed, &server->lock, &until) != ETIMEDOUT)
		continue;
	pthread_mutex_unlock(&server->lock);
}

/* From here on nothing is suspended, and what is gets resumed, which closes it: the library aborts the
 * process if it is stopped while a connection sleeps. */
static void abort_requests(struct server *server)
{
	atomic_store(&server->aborting, true);
	pthread_mutex_lock(&server->lock);
	for (struct request *req = server->requests; req; req = req->next)
		request_wake(req);
	pthread_mutex_unlock(&server->lock);
}

void server_close(struct server *server, unsigned grace_ms)
{
	if (!server)
		return;
	atomic_store(&server->closing, true);
	stop_accepting(server);
	finish_streams(server);
	websocket_list_close(server);
	wait_for_requests(server, grace_ms);
	abort_requests(server);
	for (unsigned i = 0; server->loops && i < server->loop_count; i++)
		loop_close(server->loops[i]);
	websocket_list_cut(server);
	workers_close(server->workers);
	lanes_free(server->lanes);
	poller_close(server->poller);
	free(server->loops);
	router_free(server->router);
	guard_free(server->guard);
	rates_free(server->failures);
	server_unref(server);
}
