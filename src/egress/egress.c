/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress.h"

#include "base/log.h"
#include "base/share_pool.h"
#include "egress/egress_private.h"
#include "egress/secret/tls_client.h"

#include <errno.h>
#include <sys/sysinfo.h>

#define STATIONS_MAX	    4
#define DEFAULT_CONNECTIONS 1024
#define DEFAULT_PIPES	    256
#define DEFAULT_LOOKUPS	    512

static void tick(void *arg, uint64_t now_ms)
{
	struct egress_worker *worker = arg;

	resolver_tick(worker->resolver, now_ms);
	for (struct sandbox_egress *sandbox = worker->sandboxes; sandbox; sandbox = sandbox->next)
		sandbox_egress_tick(sandbox, now_ms);
}

static int open_worker(struct egress *egress, struct egress_worker *worker, struct err *err)
{
	int r;

	worker->egress = egress;
	r = egress_thread_open("egress", tick, worker, &worker->thread, err);
	if (r == 0)
		r = resolver_open(worker->thread,
			egress->config.resolver ? egress->config.resolver : "", egress->lookups,
			&worker->resolver, err);
	return r;
}

static struct share_pool *pool_of(unsigned limit, unsigned default_limit)
{
	struct share_limits limits = share_limits_of(limit ? limit : default_limit);

	return share_pool_new(&limits);
}

static void open_pools(struct egress *egress)
{
	const struct egress_config *config = &egress->config;
	unsigned connections =
		config->max_connections ? config->max_connections : DEFAULT_CONNECTIONS;

	egress->connections = pool_of(connections, 0);
	egress->pipes = pool_of(config->max_pipes, DEFAULT_PIPES);
	egress->lookups = pool_of(config->max_lookups, DEFAULT_LOOKUPS);
	egress->max_per_sandbox = (share_limits_of(connections).per_owner + 1) / 2;
}

int egress_open(const struct egress_config *config, struct egress **ret_egress, struct err *err)
{
	int processors = get_nprocs();
	unsigned count = processors < STATIONS_MAX ? (unsigned)processors : STATIONS_MAX;
	struct egress *egress = mem_new(sizeof(*egress) + count * sizeof(egress->workers[0]));
	int r = 0;

	egress->config = *config;
	pthread_mutex_init(&egress->trust_lock, NULL);
	open_pools(egress);
	while (r == 0 && egress->worker_count < count)
		r = open_worker(egress, &egress->workers[egress->worker_count++], err);
	if (r < 0) {
		egress_close(egress);
		return r;
	}
	*ret_egress = egress;
	return 0;
}

void egress_close(struct egress *egress)
{
	if (!egress)
		return;
	for (unsigned i = 0; i < egress->worker_count; i++) {
		struct egress_worker *worker = &egress->workers[i];

		/* The thread ends first: what it serves is freed after that. */
		if (worker->thread) {
			egress_thread_lock(worker->thread);
			resolver_close(worker->resolver);
			worker->resolver = NULL;
			egress_thread_unlock(worker->thread);
		}
		egress_thread_close(worker->thread);
		pipes_fini(&worker->pipes);
	}
	share_pool_free(egress->connections);
	share_pool_free(egress->pipes);
	share_pool_free(egress->lookups);
	tls_trust_close(egress->trust);
	pthread_mutex_destroy(&egress->trust_lock);
	free(egress);
}

int egress_open_tls(struct egress *egress, int fd, const struct authority *server,
	struct tls_client **ret_client)
{
	struct err err;
	int r = 0;

	pthread_mutex_lock(&egress->trust_lock);
	if (!egress->trust)
		r = tls_trust_open(&egress->trust, &err);
	if (r < 0)
		log_error("no server can be trusted: %s", err.message);
	else
		r = tls_client_open(egress->trust, fd, server, ret_client);
	pthread_mutex_unlock(&egress->trust_lock);
	return r < 0 ? -EPROTO : 0;
}

void egress_reload_trust(struct egress *egress)
{
	struct tls_trust *now, *before;
	struct err err;

	if (tls_trust_open(&now, &err) < 0) {
		log_error("the certificates that servers are judged by stay: %s", err.message);
		return;
	}
	pthread_mutex_lock(&egress->trust_lock);
	before = egress->trust;
	egress->trust = now;
	pthread_mutex_unlock(&egress->trust_lock);
	tls_trust_close(before);
}
