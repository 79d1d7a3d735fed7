/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing, and taking in connections.
 *
 * Connections are accepted here, by the poller's thread, and given to libmicrohttpd with
 * MHD_add_connection(): its own way of leaving a listening socket alone (MHD_quiesce_daemon) races with
 * its threads and aborts the process when it loses. It also lets us spread connections evenly: there
 * is one single-threaded daemon for each core instead of the library's pool, which chooses by the number
 * of the descriptor.
 */
#include "http/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/exchange.h"
#include "http/listener.h"
#include "http/request_private.h"
#include "http/server_private.h"
#include "http/stream.h"

#include <errno.h>
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
#define IDLE_SECONDS	    60
#define ACCEPT_BATCH	    64
#define ACCEPT_PAUSE_MS	    100
#define CLOSE_MS	    2000
#define MEMORY_PER_CONN	    (32u * 1024)

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
	if (poller_arm(server->poller, &server->listen_watch, server->listen_fd, EPOLLIN) < 0)
		poller_set_alarm(server->poller, &server->listen_alarm,
			clock_steady_ms() + ACCEPT_PAUSE_MS);
}

static struct server_loop *quietest_loop(struct server *server)
{
	struct server_loop *best = &server->loops[0];

	for (unsigned i = 1; i < server->loop_count; i++)
		if (atomic_load(&server->loops[i].connections) < atomic_load(&best->connections))
			best = &server->loops[i];
	return best;
}

static void leave_connection(struct server_loop *loop);

/* 0, or -errno of accept(). */
static int accept_one(struct server *server)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	struct server_loop *loop;
	int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &len,
		SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	loop = quietest_loop(server);
	atomic_fetch_add(&loop->connections, 1);
	atomic_fetch_add(&server->connections, 1);
	/* On failure the library has closed it. */
	if (MHD_add_connection(loop->daemon, fd, (struct sockaddr *)&address, len) != MHD_YES)
		leave_connection(loop);
	return 0;
}

/* Accepts what waits, up to a batch, and says when to look again. */
static void accept_waiting(struct server *server)
{
	int r = 0;

	for (int i = 0; i < ACCEPT_BATCH && r == 0; i++) {
		if (atomic_load(&server->connections) >= server->config.max_connections) {
			/* The rest waits in the backlog; whoever leaves next arms again. */
			atomic_store(&server->accept_waits, true);
			if (atomic_load(&server->connections) >= server->config.max_connections)
				return;
			atomic_store(&server->accept_waits, false);
		}
		r = accept_one(server);
	}
	if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM) {
		log_warning("cannot accept a connection: %s", strerror(-r));
		poller_set_alarm(server->poller, &server->listen_alarm,
			clock_steady_ms() + ACCEPT_PAUSE_MS);
		return;
	}
	arm_listener(server);
}

static void listen_ready(void *owner, uint32_t events)
{
	struct server *server = owner;

	(void)events;
	pthread_mutex_lock(&server->accept_lock);
	if (server->listen_fd >= 0)
		accept_waiting(server);
	pthread_mutex_unlock(&server->accept_lock);
}

static void leave_connection(struct server_loop *loop)
{
	struct server *server = loop->server;

	atomic_fetch_sub(&loop->connections, 1);
	if (atomic_fetch_sub(&server->connections, 1) == 1 && atomic_load(&server->aborting)) {
		pthread_mutex_lock(&server->lock);
		pthread_cond_broadcast(&server->changed);
		pthread_mutex_unlock(&server->lock);
	}
	if (atomic_load(&server->accept_waits) && atomic_exchange(&server->accept_waits, false))
		poller_set_alarm(server->poller, &server->listen_alarm, 1);
}

/* A callback of the library: a connection begins, or is about to be closed. */
static void notice_connection(void *arg, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		*context = connection_open(arg, info->connect_fd);
	} else {
		connection_close(*context);
		leave_connection(arg);
	}
}

static void sweep(void *owner, uint32_t events)
{
	struct server *server = owner;

	(void)events;
	connection_sweep(server);
	if (!atomic_load(&server->closing))
		poller_set_alarm(server->poller, &server->sweep_alarm,
			clock_steady_ms() + CONNECTION_SWEEP_MS);
}

static const struct poller_ops sweep_ops = {.ready = sweep};

/* What clients do wrong, mostly; the requests themselves are logged elsewhere. */
__attribute__((format(printf, 2, 0))) static void log_library(void *arg, const char *fmt, va_list ap)
{
	char text[256];

	(void)arg;
	if (vsnprintf(text, sizeof(text), fmt, ap) > 0) {
		text[strcspn(text, "\n")] = '\0';
		log_debug("http: %s", text);
	}
}

/* The target is decoded in target.c, from what exchange_open() was given. */
static size_t keep_escaped(void *arg, struct MHD_Connection *connection, char *text)
{
	(void)arg;
	(void)connection;
	return strlen(text);
}

static int open_loops(struct server *server, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	server->loop_count = cores < 2 ? 2 : cores > 64 ? 64 : (unsigned)cores;
	server->loops = mem_new(server->loop_count * sizeof(*server->loops));
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct server_loop *loop = &server->loops[i];

		loop->server = server;
		loop->daemon = MHD_start_daemon(
			MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
				MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET,
			0, NULL, NULL, exchange_step, loop,						 /* */
			MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,				 /* */
			MHD_OPTION_URI_LOG_CALLBACK, exchange_open, loop,			 /* */
			MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,			 /* */
			MHD_OPTION_NOTIFY_COMPLETED, exchange_end, loop,			 /* */
			MHD_OPTION_NOTIFY_CONNECTION, notice_connection, loop,		 /* */
			MHD_OPTION_CONNECTION_LIMIT, server->config.max_connections + 1,	 /* */
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONN,		 /* */
			MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)MEMORY_PER_CONN / 2, /* */
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,		 /* */
			MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
		if (!loop->daemon)
			return err_set(err, ERR_INTERNAL, "start a thread of the HTTP library");
	}
	return 0;
}

static int open_parts(struct server *server, struct err *err)
{
	struct listener listener;
	int r = listener_open(server->config.bind, &listener, err);

	if (r < 0)
		return r;
	server->listen_fd = listener.fd;
	server->port = listener.port;
	server->guard = guard_new(listener.host, listener.port, server->config.hosts);
	server->router = router_new(server->config.routes, server->config.route_count);
	r = workers_open(server->config.max_workers, server->config.max_workers * QUEUE_PER_WORKER,
		&server->workers, err);
	if (r == 0)
		r = poller_open(&server->poller, err);
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
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&server->changed, &attr);
	pthread_condattr_destroy(&attr);
	server->config = *config;
	if (!server->config.max_workers)
		server->config.max_workers = DEFAULT_WORKERS;
	if (!server->config.max_connections)
		server->config.max_connections = DEFAULT_CONNECTIONS;
	server->max_readers = (server->config.max_workers + 3) / 4;
	server->listen_fd = -1;
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
	return server->port;
}

static void stop_accepting(struct server *server)
{
	pthread_mutex_lock(&server->accept_lock);
	if (server->poller) {
		poller_forget(server->poller, &server->listen_watch);
		poller_set_alarm(server->poller, &server->listen_alarm, 0);
	}
	fd_close(take_fd(&server->listen_fd));
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

static struct timespec after_ms(unsigned ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

static void wait_for_requests(struct server *server, unsigned grace_ms)
{
	struct timespec until = after_ms(grace_ms);

	pthread_mutex_lock(&server->lock);
	while (server->running > 0 &&
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

/*
 * Has the library close every connection before it is stopped: stopping it while it answers a malformed
 * request by itself makes it use an answer that it did not take (libmicrohttpd 0.9.75,
 * transmit_error_response_len). Cut again and again, since it may miss the edge.
 */
static void close_connections(struct server *server)
{
	uint64_t until_ms = clock_steady_ms() + CLOSE_MS;

	while (atomic_load(&server->connections) > 0 && clock_steady_ms() < until_ms) {
		struct timespec again = after_ms(CONNECTION_NUDGE_MS);

		connection_cut_all(server);
		pthread_mutex_lock(&server->lock);
		if (atomic_load(&server->connections) > 0)
			pthread_cond_timedwait(&server->changed, &server->lock, &again);
		pthread_mutex_unlock(&server->lock);
	}
}

void server_close(struct server *server, unsigned grace_ms)
{
	if (!server)
		return;
	atomic_store(&server->closing, true);
	stop_accepting(server);
	finish_streams(server);
	wait_for_requests(server, grace_ms);
	abort_requests(server);
	close_connections(server);
	for (unsigned i = 0; server->loops && i < server->loop_count; i++)
		MHD_stop_daemon(server->loops[i].daemon);
	workers_close(server->workers);
	poller_close(server->poller);
	free(server->loops);
	router_free(server->router);
	guard_free(server->guard);
	server_unref(server);
}
