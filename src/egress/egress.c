/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress.h"

#include "base/log.h"
#include "egress/egress_private.h"
#include "egress/tls_client.h"

#include <errno.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define STATIONS_MAX 4

static void tick(void *arg, uint64_t now_ms)
{
	struct station *station = arg;

	resolver_tick(station->resolver, now_ms);
	for (struct sluice *sluice = station->sluices; sluice; sluice = sluice->next)
		sluice_tick(sluice, now_ms);
}

static int open_station(struct egress *egress, struct station *station, struct err *err)
{
	int r;

	station->egress = egress;
	r = dispatcher_open("egress", tick, station, &station->dispatcher, err);
	if (r == 0)
		r = resolver_open(station->dispatcher,
			egress->config.resolver ? egress->config.resolver : "", &station->resolver,
			err);
	return r;
}

/* Two sockets each, pipes for some, and half of all descriptors for the rest of the daemon. */
static unsigned count_affordable(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < UINT_MAX
		       ? (unsigned)limit.rlim_cur / 6
		       : UINT_MAX;
}

int egress_open(const struct egress_config *config, struct egress **ret_egress, struct err *err)
{
	int processors = get_nprocs();
	unsigned count = processors < STATIONS_MAX ? (unsigned)processors : STATIONS_MAX;
	struct egress *egress = mem_new(sizeof(*egress) + count * sizeof(egress->stations[0]));
	int r = 0;

	egress->config = *config;
	pthread_mutex_init(&egress->trust_lock, NULL);
	egress->max_connections = count_affordable();
	while (r == 0 && egress->station_count < count)
		r = open_station(egress, &egress->stations[egress->station_count++], err);
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
	for (unsigned i = 0; i < egress->station_count; i++) {
		struct station *station = &egress->stations[i];

		/* First the thread: what it would serve after that is gone by then. */
		if (station->dispatcher) {
			dispatcher_lock(station->dispatcher);
			resolver_close(station->resolver);
			station->resolver = NULL;
			dispatcher_unlock(station->dispatcher);
		}
		dispatcher_close(station->dispatcher);
		pipes_fini(&station->pipes);
	}
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
