/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing, and taking in connections: they are accepted by the poller's thread and spread
 * evenly over the loops.
 */
#include "http/server/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "http/owner_memory.h"
#include "http/rate_limit.h"
#include "http/server/connection.h"
#include "http/server/loop.h"
#include "http/server/mhd_callbacks.h"
#include "http/server/request/request_private.h"
#include "http/server/server_private.h"
#include "http/stream.h"
#include "http/websocket/websocket_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_WORKERS	    64
#define DEFAULT_MEMORY	    (512u << 20)
#define DEFAULT_CONNECTIONS 4096
#define QUEUE_PER_WORKER    16
#define WAITING_PER_WORKER  8 /* of one owner */
#define ACCEPT_PAUSE_MS	    100
#define SHORTAGE_LOG_MS	    60000

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
	share_pool_free(server->strangers);
	share_pool_free(server->owners);
	share_pool_free(server->readers);
	owner_memory_free(server->memory);
	free(server);
}

uint64_t server_hash(uint64_t seed, const char *text)
{
	do
		seed = (seed ^ (unsigned char)*text) * UINT64_C(1099511628211);
	while (*text++);
	return seed;
}

uint64_t server_owner_key(const struct server *server, const struct principal *principal)
{
	return server_hash(server_hash(server->id_seed, principal->organization), principal->user);
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

static void listen_ready(void *arg, uint32_t events);

/* Each socket tells once of clients that wait. */
static int arm_socket(struct server *server, struct watch **watch, int fd)
{
	if (fd < 0)
		return 0;
	if (!*watch)
		return watch_open(server->poller, fd, EPOLLIN | EPOLLONESHOT, listen_ready, NULL,
			server, watch, NULL);
	watch_set(*watch, EPOLLIN | EPOLLONESHOT);
	return 0;
}

static void arm_listener(struct server *server)
{
	if (arm_socket(server, &server->listen_watch, server->listener.fd) < 0 ||
		arm_socket(server, &server->local_watch, server->local.fd) < 0)
		timer_set(server->listen_timer, ACCEPT_PAUSE_MS);
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
	int r = server->local.fd >= 0 ? listener_accept(&server->local, &arrival) : -EAGAIN;

	if (r == -EAGAIN)
		r = listener_accept(&server->listener, &arrival);
	if (r < 0)
		return r;
	atomic_fetch_add(&server->connections, 1);
	loop_take(quietest_loop(server), &arrival);
	return 0;
}

void server_connection_left(struct server *server)
{
	atomic_fetch_sub(&server->connections, 1);
	if (atomic_load(&server->accept_waits) && atomic_exchange(&server->accept_waits, false))
		timer_set(server->listen_timer, 0);
}

/* Whoever asks waits in the backlog. One that is idle makes room for it, if there is one. */
static void wait_for_descriptors(struct server *server, int r)
{
	uint64_t now = clock_steady_ms();

	if (!server->shortage_logged_ms || now - server->shortage_logged_ms > SHORTAGE_LOG_MS) {
		log_warning("cannot accept a connection: %s", strerror(-r));
		server->shortage_logged_ms = now;
	}
	connection_give_way(server);
	timer_set(server->listen_timer, ACCEPT_PAUSE_MS);
}

/* There are always places for newcomers, since strangers give way; but those who gave way must have ended. */
static bool is_full(struct server *server)
{
	return atomic_load(&server->connections) >=
	       server->config.max_connections + SERVER_ACCEPT_BATCH;
}

/* Accepts what waits, up to a batch, and says when to look again. */
static void accept_waiting(struct server *server)
{
	int r = 0;

	for (int i = 0; i < SERVER_ACCEPT_BATCH && r == 0; i++) {
		if (is_full(server)) {
			atomic_store(&server->accept_waits, true);
			if (is_full(server))
				return;
			atomic_store(&server->accept_waits, false);
		}
		r = accept_one(server);
	}
	if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM)
		wait_for_descriptors(server, r);
	else
		arm_listener(server);
}

static void listen_due(void *arg)
{
	struct server *server = arg;

	pthread_mutex_lock(&server->accept_lock);
	if (server->listener.fd >= 0)
		accept_waiting(server);
	pthread_mutex_unlock(&server->accept_lock);
}

static void listen_ready(void *arg, uint32_t events)
{
	(void)events;
	listen_due(arg);
}

/* The address that an arrival shows; of what is no address, that of nobody. */
static void set_address(const char *client, struct arrival *arrival)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&arrival->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&arrival->address;

	if (inet_pton(AF_INET6, client, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		arrival->address_len = sizeof(*six);
		return;
	}
	*four = (struct sockaddr_in){.sin_family = AF_INET};
	(void)!inet_pton(AF_INET, client, &four->sin_addr);
	arrival->address_len = sizeof(*four);
}

int server_connect(struct server *server, const char *client, int *ret_fd, struct err *err)
{
	struct arrival arrival = {.fd = -1};
	int fds[2];

	if (is_full(server) || atomic_load(&server->closing))
		return err_set(err, ERR_UNAVAILABLE, "all connections are in use");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
		return err_sys(err, "make a pair of sockets");
	set_address(client, &arrival);
	arrival.fd = fds[0];
	arrival.since_us = clock_steady_us();
	atomic_fetch_add(&server->connections, 1);
	loop_take(quietest_loop(server), &arrival);
	*ret_fd = fds[1];
	return 0;
}

static void sweep(void *arg)
{
	struct server *server = arg;

	connection_sweep(server);
	websocket_sweep(&server->websockets, clock_steady_ms());
	if (!atomic_load(&server->closing))
		timer_set(server->sweep_timer, CONNECTION_SWEEP_MS);
}

static int open_loops(struct server *server, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int r = 0;

	server->loop_count = cores < 2 ? 2 : cores > 64 ? 64 : (unsigned)cores;
	server->loops = mem_new(server->loop_count * sizeof(*server->loops));
	for (unsigned i = 0; i < server->loop_count && r == 0; i++)
		r = loop_open(server, &mhd_callbacks, &server->loops[i], err);
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
	server->memory = owner_memory_new(server->config.max_memory);
	server->failures = rate_limit_new(SERVER_FAILURES, SERVER_FAILURES_PER_SECOND);
	server->guard = guard_new(&server->listener, server->config.hosts);
	server->local_guard = guard_new(&server->local, NULL);
	server->router = router_new(server->config.routes, server->config.route_count);
	r = workers_open(server->config.max_workers, server->config.max_workers * QUEUE_PER_WORKER,
		&server->workers, err);
	if (r == 0) {
		server->fair_queue = fair_queue_new(
			server->workers, server->config.max_workers * WAITING_PER_WORKER);
		r = event_loop_open("http-poller", NULL, &server->poller, err);
	}
	if (r == 0) {
		server->websockets.poller = server->poller;
		server->listen_timer = timer_open(server->poller, listen_due, NULL, server);
		server->sweep_timer = timer_open(server->poller, sweep, NULL, server);
		r = open_loops(server, err);
	}
	if (r == 0) {
		listen_due(server);
		timer_set(server->sweep_timer, CONNECTION_SWEEP_MS);
	}
	return r;
}

/* Strangers have a quarter of the connections, and may all come from one address, as those behind a proxy do. */
static void open_pools(struct server *server)
{
	unsigned all = server->config.max_connections, strangers = (all + 3) / 4;
	struct share_limits owners = share_limits_of(all - strangers);
	struct share_limits readers = share_limits_of((server->config.max_workers + 1) / 2);

	owners.per_owner = all / 4 > 0 ? all / 4 : 1;
	owners.spares_operator = true; /* who is alone on most machines */
	server->strangers =
		share_pool_new(&(struct share_limits){.limit = strangers, .per_owner = strangers});
	server->owners = share_pool_new(&owners);
	server->readers = share_pool_new(&readers);
}

static void connection_left(void *arg)
{
	server_connection_left(arg);
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
	server->websockets = (struct websocket_list){.lock = &server->lock,
		.changed = &server->changed,
		.is_closing = &server->closing,
		.left = connection_left,
		.arg = server};
	if (!server->config.max_workers)
		server->config.max_workers = DEFAULT_WORKERS;
	if (!server->config.max_memory)
		server->config.max_memory = DEFAULT_MEMORY;
	if (!server->config.max_connections)
		server->config.max_connections = DEFAULT_CONNECTIONS;
	open_pools(server);
	server->listener.fd = -1;
	server->local.fd = -1;
	if (config->local)
		server->local = *config->local;
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
	watch_close(take_ptr(&server->listen_watch));
	watch_close(take_ptr(&server->local_watch));
	fd_close(take_fd(&server->listener.fd));
	fd_close(take_fd(&server->local.fd));
	pthread_mutex_unlock(&server->accept_lock);
}

/* Their clients see a clean end. A stream that begins later ends by itself (response.c). */
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

/* Answers those that are held only until now. One at a time, because no lock may be held meanwhile. */
static void end_patience(struct server *server)
{
	struct request *req;

	do {
		pthread_mutex_lock(&server->lock);
		req = server->requests;
		while (req && !request_yields(req))
			req = req->next;
		if (req)
			request_ref(req);
		pthread_mutex_unlock(&server->lock);
		if (req)
			request_yield(req);
		request_unref(req);
	} while (req);
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
	while ((server->running > 0 || server->websockets.first) &&
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

/* The timers last: until its thread has ended, what it serves may set them. */
static void close_poller(struct server *server)
{
	if (!server->poller)
		return;
	event_loop_stop(server->poller);
	event_loop_join(server->poller);
	timer_close(server->listen_timer);
	timer_close(server->sweep_timer);
	event_loop_close(server->poller);
}

void server_close(struct server *server, unsigned grace_ms)
{
	if (!server)
		return;
	atomic_store(&server->closing, true);
	stop_accepting(server);
	finish_streams(server);
	end_patience(server);
	websocket_close_all(&server->websockets);
	wait_for_requests(server, grace_ms);
	abort_requests(server);
	for (unsigned i = 0; server->loops && i < server->loop_count; i++)
		loop_close(server->loops[i]);
	websocket_cut_all(&server->websockets);
	workers_close(server->workers);
	fair_queue_free(server->fair_queue);
	close_poller(server);
	free(server->loops);
	router_free(server->router);
	guard_free(server->guard);
	guard_free(server->local_guard);
	rate_limit_free(server->failures);
	server_unref(server);
}
