/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/rates.h"
#include "http/sources.h"
#include "http/workers.h"
#include "proxy/passage_request.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/wakings.h"

#include <openssl/sha.h>
#include <string.h>

#define LOOPS_MAX     16
#define QUEUE_MAX     4096
#define EXCESS_MAX    64
#define BURST_SECONDS 10

struct proxy {
	struct proxy_config config;
	struct proxy_loop *loops[LOOPS_MAX];
	unsigned loop_count;
	struct workers *workers;
	atomic_uint connections, excess; /* the second: of those that are to be told */
	struct sources *sources, *keys;
	struct rates *rates; /* NULL: no limit */
	struct wakings *wakings;
};

void proxy_way_fini(struct proxy_way *way)
{
	fd_close(way->fd);
	buf_fini(&way->body);
	buf_fini(&way->fields);
	*way = (struct proxy_way){.fd = -1};
}

bool proxy_admit(struct proxy *proxy)
{
	if (atomic_fetch_add(&proxy->connections, 1) < proxy->config.max_connections)
		return true;
	proxy_leave(proxy);
	return false;
}

void proxy_leave(struct proxy *proxy)
{
	atomic_fetch_sub(&proxy->connections, 1);
}

/* --- limits --- */

bool proxy_welcome(struct proxy *proxy, struct passage *passage)
{
	passage->is_excess = !sources_enter(proxy->sources, passage->source);
	return !passage->is_excess || atomic_fetch_add(&proxy->excess, 1) < EXCESS_MAX;
}

static void unclaim(struct proxy *proxy, struct passage *passage)
{
	if (passage->claim)
		sources_leave(proxy->keys, passage->claim);
	passage->claim = 0;
}

void proxy_bid_farewell(struct proxy *proxy, struct passage *passage)
{
	if (passage->is_excess)
		atomic_fetch_sub(&proxy->excess, 1);
	sources_leave(proxy->sources, passage->source);
	unclaim(proxy, passage);
}

unsigned proxy_pace(struct proxy *proxy, const struct passage *passage)
{
	if (passage->is_local || !proxy->rates)
		return 0;
	return rates_count(proxy->rates, passage->source, clock_steady_ms());
}

/* Whoever visits may have chosen one key, and must not find another that it meets. */
static uint64_t digest(const char *key)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	uint64_t first;

	SHA256((const unsigned char *)key, strlen(key), hash);
	memcpy(&first, hash, sizeof(first));
	return first ? first : 1;
}

bool proxy_claim(struct proxy *proxy, struct passage *passage)
{
	uint64_t claim = digest(passage->way.key);

	if (claim == passage->claim)
		return true;
	unclaim(proxy, passage);
	passage->claim = claim;
	if (sources_enter(proxy->keys, claim))
		return true;
	unclaim(proxy, passage);
	return false;
}

/* --- finding --- */

static void find(struct job *job)
{
	struct passage *passage = (struct passage *)((char *)job - offsetof(struct passage, job));
	struct wakings *wakings = passage->config->proxy->wakings;
	const struct proxy_way *way = &passage->way;

	passage_request_find(passage);
	if (way->kind == PROXY_WAKE) {
		wakings_join(wakings, way, passage);
		return;
	}
	if (way->also_wakes)
		wakings_join(wakings, way, NULL);
	proxy_loop_found(passage->loop, passage);
}

void proxy_find(struct proxy *proxy, struct passage *passage)
{
	passage->job.run = find;
	workers_submit_always(proxy->workers, &passage->job);
}

/* --- life --- */

int proxy_open(const struct proxy_config *config, struct proxy **ret_proxy, struct err *err)
{
	struct proxy *proxy = mem_new(sizeof(*proxy));
	int r;

	proxy->config = *config;
	proxy->config.proxy = proxy;
	proxy->sources = sources_new(config->max_per_source);
	proxy->keys = sources_new(config->max_per_key);
	if (config->requests_per_second)
		proxy->rates = rates_new(
			BURST_SECONDS * config->requests_per_second, config->requests_per_second);
	r = workers_open(config->max_workers, QUEUE_MAX, &proxy->workers, err);
	if (r == 0)
		proxy->wakings = wakings_new(&proxy->config, proxy->workers);
	for (unsigned i = 0; r == 0 && i < config->threads && i < LOOPS_MAX; i++) {
		r = proxy_loop_open(proxy, &proxy->config, &proxy->loops[i], err);
		proxy->loop_count += r == 0;
	}
	if (r < 0) {
		proxy_close(proxy);
		return r;
	}
	*ret_proxy = proxy;
	return 0;
}

void proxy_close(struct proxy *proxy)
{
	if (!proxy)
		return;
	for (unsigned i = 0; i < proxy->loop_count; i++)
		proxy_loop_stop(proxy->loops[i]);
	if (proxy->wakings)
		wakings_stop(proxy->wakings);
	if (proxy->workers)
		workers_close(proxy->workers);
	wakings_free(proxy->wakings);
	for (unsigned i = 0; i < proxy->loop_count; i++)
		proxy_loop_free(proxy->loops[i]);
	sources_free(proxy->sources);
	sources_free(proxy->keys);
	rates_free(proxy->rates);
	free(proxy);
}
